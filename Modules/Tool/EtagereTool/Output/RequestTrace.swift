#if Demo
import Etagere
import HTTPTypes

/// A downloader that writes the head of each request and response to standard error, as `curl -v` does.
struct TracingDownloader: Downloader {
  let id = ComponentID.unique(TracingDownloader.self)
  let base: any Downloader

  var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let head = request.head
    let url = "\(head.scheme ?? "")://\(head.authority ?? "")\(head.path ?? "")"
    Console.writeError(Self.block(">", "\(head.method) \(url)", head.headerFields))
    do throws(CacheError) {
      let response = try await base.download(request)
      let status = response.head.status
      let phrase = status.reasonPhrase.isEmpty ? "" : " \(status.reasonPhrase)"
      Console.writeError(Self.block("<", "\(status.code)\(phrase) (\(url))", response.head.headerFields))
      return response
    } catch {
      Console.writeError("* \(url): \(error.reason)\n")
      throw error
    }
  }

  private static func block(_ mark: String, _ first: String, _ fields: HTTPFields) -> String {
    let lines = [first] + fields.map { "\($0.name.rawName): \(SecretFields.visible($0.value, of: $0.name))" }
    return lines.map { "\(mark) \($0)\n" }.joined()
  }
}

/// The header fields whose values are credentials, or may be. They are not printed, because output is often pasted into reports.
/// URLs and the values of all other fields are printed.
enum SecretFields {
  private static let names: Set<String> = ["authorization", "cookie", "proxy-authorization", "set-cookie"]
  /// The words in names such as `X-API-Key` and `X-Auth-Token`.
  private static let words = ["key", "secret", "token"]

  static func visible(_ value: String, of name: HTTPField.Name) -> String {
    let text = name.canonicalName
    return names.contains(text) || words.contains(where: text.contains) ? "(hidden)" : value
  }
}

/// An observer that writes to standard error how the cache handled each load, with its `Cache-Status` (RFC 9211).
final class CacheTrace: LoadObserver {
  private struct Record {
    var url: LoadURL
    var status: CacheStatus?
  }

  let id = ComponentID.unique(CacheTrace.self)
  private let next: (any LoadObserver)?
  private let records = Lock<[LoadID: Record]>([:])

  init(next: (any LoadObserver)?) { self.next = next }

  func observe(_ event: CacheEvent, of load: LoadID) {
    next?.observe(event, of: load)
    switch event {
    case .hit(let url, let source, let duration):
      say(url, "found \(source == .memory ? "in memory" : "on disk") in \(Text.time(Text.milliseconds(duration))) ms")
      say(url, CacheStatus("Etagere", hitFor: nil))
    case .started(let url): records.withLock { $0[load] = Record(url: url) }
    case .joined(let url, _): say(url, "joined a load in progress")
    case .requestSent(_, let reason, _, _):
      records.withLock { $0[load]?.status = CacheStatus("Etagere", forwarded: reason) }
    case .responseReceived(_, let status, _):
      if status == 304 { records.withLock { $0[load]?.status?.forwardStatus = status } }
    case .transferEnded(let url, let metrics, let error, _):
      let time = metrics.total.map { " in \(Text.time(Text.milliseconds($0))) ms" } ?? ""
      say(url, error.map { "transfer failed: \($0.reason)" } ?? "received \(Text.bytes(metrics.bytesOnWire))\(time)")
    case .stored(_, let layer, let bytes, _):
      let url = records.withLock { records in
        // A copy in memory of what disk has already is not a new stored response.
        if layer != .memory { records[load]?.status?.isStored = true }
        return records[load]?.url
      }
      if let url { say(url, "stored \(Text.bytes(bytes)) \(layer == .memory ? "in memory" : "on disk")") }
    case .storeFailed(_, let error): if let url = url(load) { say(url, "not stored: \(error.reason)") }
    case .backgroundFailed(let url, let error): say(url, "background revalidation failed: \(error.reason)")
    case .finished(let url, _, let fallbackReason?, _, _):
      records.withLock { records in
        records[load]?.status?.forwardStatus = fallbackReason.status
        if fallbackReason.status == nil { records[load]?.status?.detail = fallbackReason.code.rawValue }
      }
      say(url, "stale response served: \(fallbackReason.reason)")
    case .finished(let url, let source, nil, _, _):
      guard let source, source == .memory || source == .disk else { return }
      records.withLock { records in
        if records[load]?.status == nil { records[load]?.status = CacheStatus("Etagere", hitFor: nil) }
      }
      say(url, "found \(source == .memory ? "in memory" : "on disk")")
    case .workEnded:
      let record = records.withLock { $0.removeValue(forKey: load) }
      if let record, let status = record.status { say(record.url, status) }
    case .transformed, .readFailed, .revalidated: return
    }
  }

  /// Writes the status of the loads whose last event has not arrived. To be called after the manager was closed, which waits for
  /// every commit to a store but not for that event.
  func flush() {
    let rest = records.withLock { records in
      defer { records = [:] }
      return records.values.compactMap { record in record.status.map { (record.url, $0) } }
    }
    for (url, status) in rest { say(url, status) }
  }

  private func url(_ load: LoadID) -> LoadURL? { records.withLock { $0[load]?.url } }

  private func say(_ url: LoadURL, _ text: String) { Console.writeError("* \(url): \(text)\n") }

  private func say(_ url: LoadURL, _ status: CacheStatus) { say(url, "Cache-Status: \(status)") }
}
#endif
