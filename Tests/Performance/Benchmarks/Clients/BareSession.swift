#if Origin
import CacheCore
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The client that uses `URLSession` with a delegate, as a program without this package would: no cache, no cookies, and six
/// connections to a host.
final class BareSession: Client {
  private let session: URLSession
  private let reader = SessionReader()
  /// The bodies by address, or `nil` if they are not kept.
  private let kept: Lock<[URL: Data]>?

  /// - Parameter keepsBodies: Whether each loaded body is kept in a dictionary.
  init(keepsBodies: Bool = false) {
    kept = keepsBodies ? Lock([:]) : nil
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    configuration.httpShouldSetCookies = false
    configuration.httpMaximumConnectionsPerHost = 6
    session = URLSession(configuration: configuration, delegate: reader, delegateQueue: nil)
  }

  func load(_ address: Address, _ inspect: @Sendable (UnsafeRawBufferPointer) -> Void) async throws {
    let data = try await run(address, take: nil)
    kept?.withLock { $0[address.url] = data }
    data.withUnsafeBytes(inspect)
  }

  func stream(_ address: Address, _ take: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void) async throws {
    _ = try await run(address, take: take)
  }

  func close() { session.invalidateAndCancel() }

  private func run(
    _ address: Address, take: (@Sendable (UnsafeRawBufferPointer) throws -> Void)?
  ) async throws -> Data {
    let task = session.dataTask(with: URLRequest(url: address.url))
    return try await withCheckedThrowingContinuation { continuation in
      reader.expect(task, take: take, continuation)
      task.resume()
    }
  }
}

/// The delegate that collects the bodies of a session's tasks, or passes their chunks on.
private final class SessionReader: NSObject, URLSessionDataDelegate {
  private struct Transfer {
    var data = Data()
    let take: (@Sendable (UnsafeRawBufferPointer) throws -> Void)?
    var failure: (any Error)?
    let continuation: CheckedContinuation<Data, any Error>
  }

  private let transfers = Lock<[Int: Transfer]>([:])

  func expect(
    _ task: URLSessionTask, take: (@Sendable (UnsafeRawBufferPointer) throws -> Void)?,
    _ continuation: CheckedContinuation<Data, any Error>
  ) {
    let identifier = task.taskIdentifier
    transfers.withLock { $0[identifier] = Transfer(take: take, continuation: continuation) }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let identifier = dataTask.taskIdentifier
    let take = transfers.withLock { transfers -> (@Sendable (UnsafeRawBufferPointer) throws -> Void)? in
      if let take = transfers[identifier]?.take { return take }
      transfers[identifier]?.data.append(data)
      return nil
    }
    guard let take else { return }
    do {
      try data.withUnsafeBytes(take)
    } catch {
      transfers.withLock { $0[identifier]?.failure = error }
      dataTask.cancel()
    }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let identifier = task.taskIdentifier
    guard let transfer = transfers.withLock({ $0.removeValue(forKey: identifier) }) else { return }
    let status = (task.response as? HTTPURLResponse)?.statusCode
    if let failure = transfer.failure ?? error {
      transfer.continuation.resume(throwing: failure)
    } else if status != 200 {
      transfer.continuation.resume(throwing: BenchmarkFailure("status \(status ?? 0)"))
    } else {
      transfer.continuation.resume(returning: transfer.data)
    }
  }
}
#endif
