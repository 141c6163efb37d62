#if Thumbnails
import Etagere
import Foundation

/// What became of one picture.
enum Outcome: Sendable {
  /// Its thumbnail was made, and written.
  case made
  /// It has not changed, and its thumbnail is there.
  case unchanged
  /// It has not changed; its thumbnail's file was missing or another one, and was written again from the cache.
  case restored
  /// Nobody could be asked, so what stands there may be outdated.
  case unconfirmed(CacheError)
  case failed(CacheError)
  case cancelled
}

/// One run: a manager with a cache on disk that keeps thumbnails, with the validators of the pictures they were made of.
struct ThumbnailRun: Sendable {
  private let settings: ThumbnailSettings
  private let manager: ResourceManager

  /// - Parameter network: who loads `http` and `https`.
  /// - Throws: ``CacheError`` with path and reason when output or cache can't be used.
  init(_ settings: ThumbnailSettings, network: any Downloader) throws(CacheError) {
    self.settings = settings
    try OutputFile.makeFolder(settings.output)
    var configuration = try ResourceManager.Configuration.standard(
      folder: settings.cache, diskLimit: 8 << 30, downloader: network.resuming(.standard).retrying(.brief))
    // Each picture is looked at once.
    configuration.memory = nil
    configuration.schemeHandlers["file"] = PictureFiles()
    // What is wanted again is the thumbnail; the pictures stay where they are.
    configuration.storagePolicy = .variants
    configuration.executor = ProcessingExecutor(width: settings.jobs)
    configuration.maximumConcurrentTransforms = settings.jobs
    manager = ResourceManager(configuration)
  }

  /// Makes all thumbnails that must be made. What goes wrong with one is no matter to the others.
  func make(_ pictures: [Picture], _ report: ProgressReport) async -> Summary {
    var summary = Summary()
    await withTaskGroup(of: (Picture, Outcome).self) { group in
      var rest = pictures.makeIterator()
      func begin() {
        guard !Task.isCancelled, let picture = rest.next() else { return }
        group.addTask { (picture, await make(picture)) }
      }
      // While some are decoded, others come.
      for _ in 0..<settings.jobs * 2 { begin() }
      for await (picture, outcome) in group {
        summary.count(outcome)
        await report.finished(picture, outcome, summary)
        begin()
      }
    }
    summary.cancelled = pictures.count - summary.done
    await manager.close()
    return summary
  }

  func make(_ picture: Picture) async -> Outcome {
    do throws(CacheError) {
      let resource = try await manager.load(picture.url, as: settings.thumbnail.transform)
      let file = OutputFile(settings.output.appending(path: picture.name, directoryHint: .notDirectory))
      let isThere = file.contents == resource.value
      if !isThere { try file.write(resource.value) }
      if let reason = resource.fallbackReason { return .unconfirmed(reason) }
      if resource.valueOrigin == .transformed { return .made }
      return isThere ? .unchanged : .restored
    } catch {
      return error.code == .cancelled ? .cancelled : .failed(error)
    }
  }
}

/// How many of each.
struct Summary: Sendable, Equatable {
  var made = 0
  var unchanged = 0
  var restored = 0
  var unconfirmed = 0
  var failed = 0
  var cancelled = 0

  /// All but those that were cancelled.
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
#endif
