internal import CacheCore
internal import Dispatch

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The file into which a caller loads a resource.
struct FileDestination: Sendable {
  var url: URL
  /// Whether the bytes are durable before the file appears.
  var isDurable: Bool
  var calls: FileSystemCalls

  /// The path of the file.
  ///
  /// - Throws: An error if the URL is not a valid file URL.
  func path() throws(CacheError) -> String {
    let path = url.path(percentEncoded: false)
    guard url.isFileURL, !path.isEmpty else {
      throw CacheError(
        .invalidConfiguration, reason: "the destination must be a file: URL, not '\(url.address)'")
    }
    guard !path.utf8.contains(0) else {
      throw CacheError(.invalidConfiguration, reason: "the path contains a zero byte", path: path)
    }
    return path
  }
}

/// The queues for the blocking calls that write callers' files. They never block the cooperative pool. There are several, so that
/// one slow file system does not delay all files.
enum FileQueues {
  private static let queues = (0..<4).map { DispatchQueue(label: "etagere.download.\($0)", qos: .utility) }
  private static let turn = Lock(0)

  /// Returns the queue for one file. Work on the file runs in the order in which it was submitted.
  static func next() -> DispatchQueue {
    queues[
      turn.withLock { turn in
        turn = (turn + 1) % queues.count
        return turn
      }]
  }
}

extension DispatchQueue {
  /// Runs blocking work in the queue, and waits for it without blocking.
  func perform<Value: Sendable>(
    _ work: @escaping @Sendable () throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    let result: Result<Value, CacheError> = await withCheckedContinuation { continuation in
      async { continuation.resume(returning: Result(catching: work)) }
    }
    return try result.get()
  }
}
