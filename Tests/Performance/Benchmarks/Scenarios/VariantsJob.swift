#if VIPS && os(Linux)
import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import ETagValidation
import Foundation
import ImageCodecs
import MemoryStore

/// Loads of a cached processed image, alternating with processing its original.
struct VariantsJob: Job {
  static let name = "variants"

  enum Way: String, Codable, Hashable, Sendable, CaseIterable {
    case memory
    case memoryAnew = "memory, a new transform for each load"
    case webp = "disk, WebP"
    case jpeg = "disk, JPEG"
    case file = "disk, WebP, not decoded"
    case original = "processed from the original on disk"
  }

  let way: Way
  let image: URL
  let batches: Int
  /// The number of loads in a batch.
  let loads: Int

  var isInMemory: Bool { way == .memory || way == .memoryAnew }

  private static let small = ImageProcessor.resize(.fit(ThumbnailJob.side, ThumbnailJob.side))

  func run() async throws -> Measurement {
    let folder = try DiskEntries.folder()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let bytes = try Data(contentsOf: image)
    let fixture = try VariantsFixture(bytes, folder, hasMemory: isInMemory)
    var measurement = Measurement()
    try await fixture.warmUp(way)
    for _ in 0..<batches {
      let watch = Stopwatch()
      let found = try await fixture.load(way, loads)
      measurement.add(watch.wall / .seconds(1) / Double(loads), to: .facade)
      measurement.add(watch.processor / .seconds(1) / Double(loads), to: .processor)
      measurement.check("loads from the expected source", found, is: loads)
      if isInMemory {
        let plain = Stopwatch()
        measurement.check("hits", try await fixture.bytes(loads), is: loads)
        measurement.add(plain.wall / .seconds(1) / Double(loads), to: .raw)
        measurement.add(plain.processor / .seconds(1) / Double(loads), to: .rawProcessor)
      } else {
        let plain = Stopwatch()
        _ = try ImageDecoder(size: .fit(ThumbnailJob.side, ThumbnailJob.side)).decode(bytes)
        measurement.add(plain.wall, to: .raw)
        measurement.add(plain.processor, to: .rawProcessor)
        let full = Stopwatch()
        _ = try Self.small.process(ImageDecoder().decode(bytes))
        measurement.add(full.wall, to: .own)
      }
    }
    await fixture.cache.close()
    return measurement
  }

  /// A manager with the image on disk.
  private struct VariantsFixture {
    let cache: DiskCache
    private let manager: ResourceManager
    private let url: URL

    init(_ bytes: Data, _ folder: String, hasMemory: Bool) throws {
      guard let url = URL(string: "https://images.example.com/photographs/2026/11/22/1000001.jpg") else {
        throw BenchmarkFailure("invalid URL")
      }
      self.url = url
      cache = try DiskCache(path: folder, configuration: .init(sizeLimit: nil))
      let network = ScriptedDownloader()
      network.respond(to: url, with: .ok(bytes, etag: "\"65a-1f2e3d4c\"", cacheControl: "public, max-age=86400"))
      var configuration = ResourceManager.Configuration()
      configuration.downloader = network
      configuration.store = cache
      configuration.validator = ETagValidator()
      configuration.executor = ProcessingExecutor()
      configuration.memory = hasMemory ? MemoryCache(limits: .init(cost: 1 << 30)) : nil
      manager = ResourceManager(configuration)
    }

    func warmUp(_ way: Way) async throws {
      _ = try await manager.load(url)
      for _ in 0..<3 { _ = try await load(way, 1) }
    }

    /// - Returns: The number of loads from the expected source.
    @concurrent func load(_ way: Way, _ count: Int) async throws -> Int {
      let transform =
        switch way {
        case .jpeg: ResourceTransform.image(VariantsJob.small, storedAs: .jpeg)
        case .original: ResourceTransform.image(VariantsJob.small)
        case .memory, .memoryAnew, .webp, .file: ResourceTransform.image(VariantsJob.small, storedAs: .webp)
        }
      let fileTransform = ResourceTransform<Data>.imageFile(VariantsJob.small, as: .webp)
      var found = 0
      for _ in 0..<count {
        switch way {
        case .memory: if try await isFound(transform, .memory) { found += 1 }
        case .memoryAnew: if try await isFound(.image(VariantsJob.small, storedAs: .webp), .memory) { found += 1 }
        case .webp, .jpeg: if try await isFound(transform, .disk) { found += 1 }
        case .original: if try await isFound(transform, .transformed) { found += 1 }
        case .file:
          let file = try await manager.load(url, as: fileTransform)
          if file.source == .disk, file.valueOrigin == .disk { found += 1 }
        }
      }
      return found
    }

    private func isFound(_ transform: ResourceTransform<DecodedImage>, _ origin: ValueOrigin) async throws -> Bool {
      let image = try await manager.load(url, as: transform)
      return image.valueOrigin == origin && image.value.size.width == ThumbnailJob.side
    }

    /// Loads the original's bytes from memory.
    @concurrent func bytes(_ count: Int) async throws -> Int {
      var found = 0
      for _ in 0..<count {
        if try await manager.load(url, as: .bytes).source == .memory { found += 1 }
      }
      return found
    }
  }
}
#endif
