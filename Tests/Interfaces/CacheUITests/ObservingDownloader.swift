import CacheCore
import CacheTesting
import CacheUI

/// The current priorities of the started downloads.
final class ObservedPriorities: Sendable {
  private let priorities = Lock<[LoadPriority]>([])

  var levels: [LoadPriority.Level] { priorities.withLock { $0.map(\.level) } }

  func add(_ priority: LoadPriority) { priorities.withLock { $0.append(priority) } }
}

/// A downloader that records the priority of each request.
struct ObservingDownloader: Downloader {
  let base: ScriptedDownloader
  let observed: ObservedPriorities

  var id: ComponentID { base.id }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    observed.add(request.priority)
    return try await base.download(request)
  }
}
