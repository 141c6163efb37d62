#if Service
internal import CacheCore
internal import CacheManager
internal import HTTPTypes
internal import ImageCodecs

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The operation `original`: the response to the source's own request, which streams from the durable store, or else from the
/// origin.
///
/// The body is never whole in memory, however slowly a client reads it. Conditions and ranges apply to the source.
extension ImageService {
  func original(
    _ source: HTTPRequest, with conditions: HTTPFields, isHead: Bool
  ) async throws(CacheError) -> (response: ImageResponse, status: CacheStatus) {
    var request = source
    request.headerFields.append(contentsOf: conditions)
    let isFile = source.absoluteURL.map(SourceReference.isFile) ?? false
    let options = RequestOptions {
      ($0.reads, $0.writes) = isFile ? ([], []) : (.disk, .disk)
      if isFile { $0.downloader = .use(folders) }
      // A client may read for longer than the limit of a result.
      $0.idleTimeout = limits.timeout
    }
    let limit = Int64(limits.sourceBytes)
    let (cached, sent) = try await manager.respondFollowingRedirects(to: request, storingUpTo: limit, options: options)
    do throws(CacheError) {
      try check(cached.head)
      let hasContent = cached.head.status == .ok || cached.head.status == .partialContent
      let usesConnection = cached.source == .network && hasContent && !isHead && !isFile
      let stream = usesConnection ? try streams.begin(from: "\(sent.scheme ?? "")://\(sent.authority ?? "")") : nil
      let body = LimitedBody(cached.body.source, limit: limit, stream)
      if let length = cached.body.length, length > limits.sourceBytes { throw body.tooLarge }
      var fields = HTTPFields()
      for name in Self.originalFields {
        for field in cached.head.headerFields[fields: name] { fields.append(field) }
      }
      if hasContent {
        // A part that does not begin with the first byte does not show its format.
        let isStart = cached.head.status == .ok || ContentRange(fields)?.bytes.lowerBound == 0
        let format = isStart ? try await body.peek().flatMap { ImageFormat(of: $0) } : nil
        fields[.contentType] = format?.mediaType ?? fields.contentType ?? "application/octet-stream"
        if let length = cached.body.length { fields[.contentLength] = "\(length)" }
      }
      if isHead || !hasContent { cached.body.source.cancel() }
      return (
        ImageResponse(
          head: HTTPResponse(status: cached.head.status, headerFields: fields),
          body: isHead || !hasContent ? ResourceBody(Data()) : ResourceBody(length: cached.body.length, source: body),
          servedFrom: cached.source), cached.status
      )
    } catch {
      cached.body.source.cancel()
      throw error
    }
  }

  private func check(_ response: HTTPResponse) throws(CacheError) {
    switch response.status {
    case .ok, .partialContent, .notModified, .preconditionFailed, .rangeNotSatisfiable: return
    default:
      throw CacheError(
        .unacceptableStatus, reason: "the source responded with the status \(response.status.code)", response: response)
    }
  }

  /// The fields of the source that describe its content or its lifetime.
  private static let originalFields: [HTTPField.Name] =
    ImageRenderer.copiedFields + [
      .eTag, .age, .contentType, .contentLength, .contentEncoding, .contentRange, .acceptRanges,
    ] + ["Cache-Status"].compactMap { HTTPField.Name($0) }
}

/// The originals that stream from origins. Each one holds a connection for as long as its client reads.
///
/// A downloader has a few connections for each host. The limit leaves some of them to the sources of results.
final class OriginalStreams: Sendable {
  /// The maximum number for each origin.
  static let limit = 4

  /// A stream that counts until it ends or is released.
  final class Stream: Sendable {
    private let origin: String
    private let streams: OriginalStreams
    private let isRunning = Lock(true)

    fileprivate init(_ origin: String, _ streams: OriginalStreams) { (self.origin, self.streams) = (origin, streams) }

    deinit { end() }

    func end() {
      let wasRunning = isRunning.withLock { isRunning in
        defer { isRunning = false }
        return isRunning
      }
      guard wasRunning else { return }
      streams.counts.withLock { counts in
        let count = counts[origin] ?? 1
        counts[origin] = count == 1 ? nil : count - 1
      }
    }
  }

  private let counts = Lock<[String: Int]>([:])

  /// - Throws: `CacheError.Code.overloaded` at the limit.
  func begin(from origin: String) throws(CacheError) -> Stream {
    let mayBegin = counts.withLock { counts in
      guard counts[origin, default: 0] < Self.limit else { return false }
      counts[origin, default: 0] += 1
      return true
    }
    guard mayBegin else { throw CacheError(.overloaded, reason: "too many originals are streaming from '\(origin)'") }
    return Stream(origin, self)
  }
}

/// A body whose first bytes are read in advance, and that ends with an error beyond a limit.
private final class LimitedBody: ResourceBody.Source {
  private struct State {
    var peeked: Data?
    var count: Int64 = 0
  }

  private let source: any ResourceBody.Source
  private let limit: Int64
  private let state = Lock(State())

  private let stream: OriginalStreams.Stream?

  init(_ source: any ResourceBody.Source, limit: Int64, _ stream: OriginalStreams.Stream?) {
    (self.source, self.limit, self.stream) = (source, limit, stream)
  }

  var tooLarge: CacheError { CacheError(.bodyTooLarge, reason: "the body is larger than the limit of \(limit) bytes") }

  /// Returns the next bytes, which ``next()`` returns again.
  func peek() async throws(CacheError) -> Data? {
    let chunk = try await pull()
    state.withLock { $0.peeked = chunk }
    return chunk
  }

  func next() async throws(CacheError) -> Data? {
    let peeked = state.withLock { state in
      defer { state.peeked = nil }
      return state.peeked
    }
    let chunk: Data?
    if let peeked { chunk = peeked } else { chunk = try await pull() }
    guard let chunk else { return nil }
    let count = state.withLock { state in
      state.count += Int64(chunk.count)
      return state.count
    }
    guard count <= limit else {
      cancel()
      throw tooLarge
    }
    return chunk
  }

  private func pull() async throws(CacheError) -> Data? {
    do throws(CacheError) {
      guard let chunk = try await source.next() else {
        stream?.end()
        return nil
      }
      return chunk
    } catch {
      stream?.end()
      throw error
    }
  }

  func cancel() {
    source.cancel()
    stream?.end()
  }

  var trailers: HTTPFields? { nil }
}
#endif
