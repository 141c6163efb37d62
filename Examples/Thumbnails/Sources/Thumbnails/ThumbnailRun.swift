import Etagere
import Foundation

/// The outcome for one image.
enum Outcome: Sendable {
  /// The thumbnail was made and written.
  case made
  /// The image has not changed, and its thumbnail exists.
  case unchanged
  /// The image has not changed. The thumbnail file was missing or different, and was written again from the cache.
  case restored
  /// The origin could not be reached, so the thumbnail may be outdated.
  case unconfirmed(CacheError)
  case failed(CacheError)
  case cancelled
}

/// One run: a manager with a disk cache for thumbnails and the validators of their images.
struct ThumbnailRun: Sendable {
  private let settings: ThumbnailSettings
  private let manager: ResourceManager

  /// - Parameter network: The downloader for `http` and `https`.
  /// - Throws: ``CacheError`` with the path and the reason, if the output or the cache cannot be used.
  init(_ settings: ThumbnailSettings, network: any Downloader) throws(CacheError) {
    self.settings = settings
    try Self.makeFolder(settings.output)
    var configuration = try ResourceManager.Configuration.standard(
      folder: settings.cache, diskLimit: 8 << 30, downloader: network.resuming(.standard).retrying(.brief))
    // Each image is loaded once, so a memory cache would not help.
    configuration.memory = nil
    // A larger file is refused before it is read.
    configuration.maximumBodySize = Int64(ImageLimits.standard.bytes)
    // Only the thumbnails are stored, and not the images.
    configuration.storagePolicy = .variants
    configuration.executor = ProcessingExecutor(width: settings.jobs)
    configuration.maximumConcurrentTransforms = settings.jobs
    if settings.waitsForCache { (configuration.storeReadTimeout, configuration.storeWriteTimeout) = (nil, nil) }
    manager = ResourceManager(configuration)
  }

  /// Makes all missing or outdated thumbnails. The error of one image does not affect the others.
  func make(_ images: [SourceImage], _ report: ProgressReport) async -> Summary {
    var summary = Summary()
    await withTaskGroup(of: (SourceImage, Outcome).self) { group in
      var rest = images.makeIterator()
      func begin() {
        guard !Task.isCancelled, let image = rest.next() else { return }
        group.addTask { (image, await make(image)) }
      }
      // Twice as many loads as decoding jobs, so that images are loaded while others are decoded.
      for _ in 0..<settings.jobs * 2 { begin() }
      for await (image, outcome) in group {
        summary.count(outcome)
        await report.finished(image, outcome, summary)
        begin()
      }
    }
    summary.cancelled = images.count - summary.done
    await manager.close()
    return summary
  }

  func make(_ image: SourceImage) async -> Outcome {
    do throws(CacheError) {
      let resource = try await manager.load(image.url, as: settings.thumbnail.transform)
      let url = settings.output.appending(path: image.name, directoryHint: .notDirectory)
      let isThere = (try? Data(contentsOf: url)) == resource.value
      if !isThere {
        try Self.makeFolder(url.deletingLastPathComponent())
        try Self.write(resource.value, to: url)
      }
      if let reason = resource.fallbackReason { return .unconfirmed(reason) }
      if resource.valueOrigin == .transformed { return .made }
      return isThere ? .unchanged : .restored
    } catch {
      return error.code == .cancelled ? .cancelled : .failed(error)
    }
  }

  /// Writes a draft and moves it to the path, so that the thumbnail is never incomplete.
  private static func write(_ bytes: Data, to url: URL) throws(CacheError) {
    do {
      try bytes.write(to: url, options: .atomic)
    } catch {
      throw CacheError(
        .fileSystem, reason: "cannot write the thumbnail: \(error.localizedDescription)", path: url.path(percentEncoded: false),
        underlying: error)
    }
  }

  private static func makeFolder(_ url: URL) throws(CacheError) {
    do {
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    } catch {
      throw CacheError(
        .fileSystem, reason: "cannot create the folder: \(error.localizedDescription)", path: url.path(percentEncoded: false),
        underlying: error)
    }
  }
}

/// The number of images for each outcome.
struct Summary: Sendable, Equatable {
  var made = 0
  var unchanged = 0
  var restored = 0
  var unconfirmed = 0
  var failed = 0
  var cancelled = 0

  /// The number of images that were not cancelled.
  var done: Int { made + unchanged + restored + unconfirmed + failed }

  mutating func count(_ outcome: Outcome) {
    switch outcome {
    case .made: made += 1
    case .unchanged: unchanged += 1
    case .restored: restored += 1
    case .unconfirmed: unconfirmed += 1
    case .failed: failed += 1
    case .cancelled: cancelled += 1
    }
  }
}
