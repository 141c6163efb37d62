#if canImport(ImageIO) || VIPS
import CacheTesting
import Etagere
import Foundation
import HTTPTypes
import Testing

@Suite("Processed images in a durable store")
struct ImageVariantTests {
  enum StoreKind: CaseIterable { case volatile, disk }

  /// A format other than JPEG that the engine writes. ImageIO does not write WebP.
  private static var format: ImageFormat { ImageEncoder.isWritten(.webp) ? .webp : .png }

  private static var encoder: ImageEncoder { ImageEncoder(format) }

  /// Successive managers with a shared store and without shared memory, like successive processes.
  private final class ManagerFixture: Sendable {
    let network = ScriptedDownloader()
    let observer = RecordingObserver()
    let store: any CacheStore
    let url: URL
    private let folder: TemporaryFolder

    init(_ kind: StoreKind) throws {
      folder = try TemporaryFolder()
      store = kind == .disk ? try DiskCache(folder: folder.url) : VolatileStore()
      url = try #require(URL(string: "https://example.com/photo"))
    }

    func manager() throws -> ResourceManager {
      var configuration = try ResourceManager.Configuration.standard(folder: nil, downloader: network)
      configuration.store = store
      configuration.observer = observer
      // The next manager must find the stored image, even if the disk is slow.
      configuration.storeWriteTimeout = .seconds(600)
      return ResourceManager(configuration)
    }

    /// Returns the result of a load in a new process.
    func load(_ transform: ResourceTransform<DecodedImage>, _ policy: StoragePolicy = .all) async throws -> Resource<DecodedImage>
    {
      try await manager().load(url, as: transform, options: RequestOptions { $0.storagePolicy = policy })
    }

    /// Returns whether the original is stored, and the formats of the variants.
    func stored() async throws -> (original: Bool, variants: [ImageFormat]) {
      var formats: [ImageFormat] = []
      for entry in try await store.transforms(of: url.absoluteString) {
        let file = try await store.entry(for: entry.key)?.body.collect() ?? Data()
        formats.append(try ImageHeader(of: file).format)
      }
      return (try await !store.variants(of: url.absoluteString).isEmpty, formats.sorted { $0.name < $1.name })
    }
  }

  /// Returns an image with many bytes, so that its variants are smaller.
  private func photo(seed: UInt64 = 1, width: Int = 320, channels: PixelBuffer.Channels = .rgb) throws -> DecodedImage {
    var state = seed
    let pixels = PixelBuffer(size: PixelSize(width, 240), channels: channels) { bytes in
      for index in bytes.indices {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        bytes[index] = UInt8(truncatingIfNeeded: state >> 58) &+ UInt8(truncatingIfNeeded: index / 1_200)
      }
    }
    return DecodedImage(try #require(pixels))
  }

  private func file(seed: UInt64 = 1, width: Int = 320) throws -> Data {
    try ImageEncoder(.jpeg, quality: 90).encode(photo(seed: seed, width: width))
  }

  private static let small = ImageProcessor.resize(.fit(80, 80))

  @Test("the policy decides which images are stored", arguments: StoreKind.allCases, StoragePolicy.allCases)
  func policies(_ kind: StoreKind, _ policy: StoragePolicy) async throws {
    let fixture = try ManagerFixture(kind)
    fixture.network.respond(to: fixture.url, with: .ok(try file(), cacheControl: "max-age=3600"))

    let made = try await fixture.load(.image(Self.small, storedAs: Self.encoder), policy)

    #expect(made.value.size == PixelSize(80, 60) && made.valueOrigin == .transformed && made.value.format == .jpeg)
    let stored = try await fixture.stored()
    #expect(stored.original == (policy != .variants))
    #expect(stored.variants == (policy == .originals ? [] : [Self.format]))
  }

  @Test(
    "the next process shows a variant without the network, without the original and without making it again",
    arguments: StoreKind.allCases)
  func warm(_ kind: StoreKind) async throws {
    let fixture = try ManagerFixture(kind)
    let count = Lock(0)
    let counted =
      Self.small
      + .custom("counted") { pixels in
        count.withLock { $0 += 1 }
        return pixels
      }
    fixture.network.respond(to: fixture.url, with: .ok(try file(), cacheControl: "max-age=3600"))
    let transform = ResourceTransform.image(counted, scale: 2, storedAs: .png)
    let made = try await fixture.load(transform, .variants).value

    let warm = try await fixture.load(transform, .variants)

    #expect(warm.source == .disk && warm.valueOrigin == .disk && count.withLock { $0 } == 1)
    #expect(warm.value.pixels.bytes == made.pixels.bytes && warm.value.scale == 2 && warm.value.url == fixture.url)
    // The header belongs to the file of the variant.
    #expect(warm.value.format == .png && warm.value.header.size == PixelSize(80, 60))
    #expect(try await fixture.manager().image(for: fixture.url, counted, scale: 2, storedAs: .png).size == PixelSize(80, 60))
    try fixture.network.verify()
  }

  @Test("a 304 keeps the variants, and a 200 removes them", arguments: StoreKind.allCases, [StoragePolicy.variants, .all])
  func changed(_ kind: StoreKind, _ policy: StoragePolicy) async throws {
    let fixture = try ManagerFixture(kind)
    fixture.network.respond(
      to: fixture.url, with: .ok(try file(), etag: "\"1\"", cacheControl: "no-cache"),
      .notModified(etag: "\"1\"", cacheControl: "no-cache"),
      .ok(try file(seed: 9, width: 480), etag: "\"2\"", cacheControl: "no-cache"))
    let transforms = [ResourceTransform.image(Self.small, storedAs: Self.encoder), .image(Self.small + .gray, storedAs: .jpeg)]
    _ = try await fixture.load(transforms[0], policy)

    let confirmed = try await fixture.load(transforms[0], policy)
    #expect(confirmed.source == .revalidated && confirmed.valueOrigin == .disk && confirmed.value.format == Self.format)

    let anew = try await fixture.load(transforms[1], policy)
    #expect(anew.source == .network && anew.value.size == PixelSize(80, 40))
    // The variant of the other transform, which was made from the earlier body, is removed too.
    #expect(try await fixture.stored().variants == [.jpeg])
    try fixture.network.verify()
  }

  @Test("every variant is made from the stored original without the network", arguments: StoreKind.allCases)
  func original(_ kind: StoreKind) async throws {
    let fixture = try ManagerFixture(kind)
    fixture.network.respond(to: fixture.url, with: .ok(try file(), cacheControl: "max-age=3600"))
    _ = try await fixture.manager().load(fixture.url)
    // Transforms with different formats, or different qualities of one format, are different transforms.
    let transforms = [
      ResourceTransform.image(Self.small, storedAs: Self.encoder), .image(Self.small, storedAs: .init(Self.format, quality: 40)),
      .image(Self.small, storedAs: .jpeg), .image(Self.small, storedAs: .automatic),
    ]

    for transform in transforms { #expect(try await fixture.load(transform).source == .disk) }

    #expect(Set(transforms.map(\.id) + [ResourceTransform.image(Self.small).id]).count == 5)
    #expect(try await fixture.stored().variants == [.jpeg, .jpeg, Self.format, Self.format])
    for transform in transforms { #expect(try await fixture.load(transform).valueOrigin == .disk) }
    try fixture.network.verify()
  }

  @Test("a variant is decoded once and encoded once for many simultaneous loads", arguments: StoreKind.allCases)
  func shared(_ kind: StoreKind) async throws {
    let fixture = try ManagerFixture(kind)
    fixture.network.respond(to: fixture.url, with: .ok(try file(), cacheControl: "max-age=3600"))
    let manager = try fixture.manager()
    let count = Lock(0)
    let transform = ResourceTransform.image(
      Self.small
        + .custom("counted") { pixels in
          count.withLock { $0 += 1 }
          return pixels
        }, storedAs: Self.encoder)

    try await withThrowingTaskGroup(of: PixelSize.self) { group in
      for _ in 0..<50 { group.addTask { try await manager.load(fixture.url, as: transform).value.size } }
      for try await size in group { #expect(size == PixelSize(80, 60)) }
    }

    #expect(count.withLock { $0 } == 1)
    let stored = fixture.observer.events.count {
      if case .stored(let key, .disk, _, _) = $0 { key.transform == transform.id } else { false }
    }
    #expect(stored == 1)
    try fixture.network.verify()
  }

  @Test(
    "a damaged variant is replaced", arguments: StoreKind.allCases,
    [Data(), Data("<html>".utf8), Data([0xFF, 0xD8, 0xFF, 0xE0])])
  func damaged(_ kind: StoreKind, _ junk: Data) async throws {
    let fixture = try ManagerFixture(kind)
    fixture.network.respond(to: fixture.url, with: .ok(try file(), cacheControl: "max-age=3600"))
    let transform = ResourceTransform.image(Self.small, storedAs: Self.encoder)
    let made = try await fixture.load(transform)
    let key = CacheKey(resource: fixture.url.absoluteString, transform: transform.id)
    let entry = try #require(try await fixture.store.entry(for: key))
    var metadata = entry.metadata
    metadata.bodyLength = Int64(junk.count)
    try await fixture.store.store(junk, for: key, metadata: metadata)

    let healed = try await fixture.load(transform)

    #expect(healed.valueOrigin == .transformed && healed.source == .disk && healed.value.pixels.bytes == made.value.pixels.bytes)
    #expect(try await fixture.load(transform).valueOrigin == .disk)
    try fixture.network.verify()
  }

  @Test("a variant keeps its alpha in a format that supports it", arguments: StoreKind.allCases)
  func alpha(_ kind: StoreKind) async throws {
    let fixture = try ManagerFixture(kind)
    fixture.network.respond(to: fixture.url, with: .ok(try file(), cacheControl: "max-age=3600"))
    let round = ImageProcessor.fill(60, 60) + .circle

    _ = try await fixture.load(.image(round, storedAs: .automatic))
    let warm = try await fixture.load(.image(round, storedAs: .automatic))
    #expect(warm.valueOrigin == .disk && warm.value.pixels[0, 0].alpha == 0 && warm.value.pixels[30, 30].alpha == 255)
    let stored = try await fixture.stored().variants

    // JPEG does not support alpha. Such an image is made from its original each time, and keeps its shape.
    for _ in 0..<2 {
      let made = try await fixture.load(.image(round, storedAs: .jpeg))
      #expect(made.valueOrigin == .transformed && made.value.pixels[0, 0].alpha == 0)
    }
    #expect(try await fixture.stored().variants == stored && stored.count == 1)
  }

  @Test("an animated image has no variant that loses its frames, and its original is stored", arguments: StoragePolicy.allCases)
  func animated(_ policy: StoragePolicy) async throws {
    // Given two frames of one pixel (LZW codes: clear, the color, end)
    let frame: [UInt8] = [0x21, 0xF9, 4, 0, 10, 0, 0, 0, 0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0]
    let gif =
      Array("GIF89a".utf8) + [1, 0, 1, 0, 0x80, 0, 0, 255, 0, 0, 0, 0, 255] + frame + [2, 2, 0x44, 1, 0] + frame
      + [2, 2, 0x4C, 1, 0, 0x3B]
    let fixture = try ManagerFixture(.disk)
    fixture.network.respond(to: fixture.url, with: .ok(Data(gif), cacheControl: "max-age=3600"))
    let transform = ResourceTransform.image(storedAs: .png)
    // When
    for origin in [ResourceSource.network, .disk] {
      let shown = try await fixture.load(transform, policy)
      // Then
      #expect(shown.source == origin && shown.valueOrigin == .transformed && shown.value.frameCount == 2)
      #expect(try shown.value.pixels(ofFrame: 1)[0, 0] == RGBA(0, 0, 255))
      #expect(try await fixture.stored() == (true, []))
    }
    try fixture.network.verify()
  }

  @Test("a file that is cut short has no variant")
  func partial() async throws {
    let fixture = try ManagerFixture(.disk)
    fixture.network.respond(to: fixture.url, with: .ok(try file().prefix(9_000), cacheControl: "max-age=3600"))
    let transform = ResourceTransform(decoder: ImageDecoder { $0.allowsPartial = true }, encoder: Self.encoder)

    #expect(try await fixture.load(transform).value.isPartial)

    #expect(try await fixture.stored() == (true, []))
  }

  @Test("encoded files are equal in every process", arguments: StoreKind.allCases)
  func files(_ kind: StoreKind) async throws {
    let fixture = try ManagerFixture(kind)
    fixture.network.respond(to: fixture.url, with: .ok(try file(), cacheControl: "max-age=3600"))
    let transform = ResourceTransform<Data>.imageFile(Self.small + .circle, as: .automatic)
    let made = try await fixture.manager().load(fixture.url, as: transform)

    let warm = try await fixture.manager().load(fixture.url, as: transform)

    #expect(made.valueOrigin == .transformed && warm.valueOrigin == .disk && warm.data == made.data)
    let image = try ImageDecoder().decode(warm.data)
    #expect(
      image.size == PixelSize(60, 60) && image.format == ImageEncoder.automatic.alphaFormat && image.pixels[0, 0].alpha == 0)
    // Transparent pixels are white in a format without alpha.
    let jpeg = try await fixture.manager().load(fixture.url, as: .imageFile(Self.small + .circle, as: .jpeg))
    let corner = try ImageDecoder().decode(jpeg.data).pixels[0, 0]
    #expect(min(corner.red, corner.green, corner.blue) > 240 && jpeg.key != warm.key)

    let key = CacheKey(resource: fixture.url.absoluteString, transform: transform.id)
    var metadata = try #require(try await fixture.store.entry(for: key)).metadata
    metadata.bodyLength = 6
    try await fixture.store.store(Data("<html>".utf8), for: key, metadata: metadata)
    let healed = try await fixture.manager().load(fixture.url, as: transform)
    #expect(healed.valueOrigin == .transformed && healed.data == made.data)
    try fixture.network.verify()
  }
}
#endif
