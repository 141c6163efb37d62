import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes

/// An origin with one resource, which sends whole responses and ranges, and counts what it sends.
final class RangeServer: Sendable {
  struct State: Sendable {
    var body: Data
    var tag = "\"1\""
    var cacheControl: String? = "max-age=600"
    /// Whether the server ignores ranges.
    var sendsWholes = false
    /// Whether parts have `Accept-Ranges`, which RFC 9110 does not require.
    var statesRanges = true
    /// Changes a response before it is sent.
    var change: @Sendable (HTTPRequest, ScriptedResponse) -> ScriptedResponse = { $1 }
    var ranges: [Range<Int64>] = []
    var wholes = 0
  }

  let state: Lock<State>

  init(_ count: Int) { state = Lock(State(body: Self.bytes(count))) }

  static func bytes(_ count: Int, seed: UInt8 = 0) -> Data {
    Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ ($0 >> 8) &* 7) &+ seed })
  }

  var body: Data { state.withLock { $0.body } }
  /// The ranges that were sent, in order.
  var ranges: [Range<Int64>] { state.withLock { $0.ranges } }
  /// The number of whole responses that were sent.
  var wholes: Int { state.withLock { $0.wholes } }
  /// The number of bytes in the ranges that were sent.
  var sent: Int64 { ranges.reduce(0) { $0 + $1.upperBound - $1.lowerBound } }

  /// Forgets what was sent.
  func reset() { state.withLock { ($0.ranges, $0.wholes) = ([], 0) } }

  /// Replaces the resource.
  func replace(_ tag: String, seed: UInt8 = 100) {
    state.withLock { ($0.body, $0.tag) = (Self.bytes($0.body.count, seed: seed), tag) }
  }

  func response(to head: HTTPRequest) -> ScriptedResponse {
    let (response, change) = state.withLock {
      state -> (ScriptedResponse, @Sendable (HTTPRequest, ScriptedResponse) -> ScriptedResponse) in
      let fields = Self.fields(state)
      if head.headerFields[.ifNoneMatch]?.contains(state.tag) == true {
        return (.notModified(etag: state.tag, cacheControl: state.cacheControl), state.change)
      }
      let isCurrent = head.headerFields[.ifRange].map { $0 == state.tag } ?? true
      guard let range = head.headerFields[.range], isCurrent, !state.sendsWholes else {
        state.wholes += 1
        return (.ok(state.body, fields: fields), state.change)
      }
      let ends = range.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
      let count = Int64(state.body.count)
      guard let first = Int64(ends[0]), first < count else {
        return (.response(.rangeNotSatisfiable, fields: [.contentRange: "bytes */\(count)"]), state.change)
      }
      let end = min(count, Int64(ends[1]).map { $0 + 1 } ?? count)
      state.ranges.append(first..<end)
      var part = fields
      if !state.statesRanges { part[.acceptRanges] = nil }
      part[.contentRange] = "bytes \(first)-\(end - 1)/\(count)"
      return (.response(.partialContent, fields: part, body: state.body[Int(first)..<Int(end)]), state.change)
    }
    return change(head, response)
  }

  private static func fields(_ state: State) -> HTTPFields {
    var fields: HTTPFields = [.eTag: state.tag, .acceptRanges: "bytes"]
    if let cacheControl = state.cacheControl { fields[.cacheControl] = cacheControl }
    return fields
  }
}

extension ManagerFixture {
  /// Creates a manager that combines parts, with a server of one resource.
  static func combining(
    _ count: Int, mode: CacheMode = .private, _ change: (inout ResourceManager.Configuration) throws -> Void = { _ in }
  ) throws -> (fixture: ManagerFixture, server: RangeServer) {
    let server = RangeServer(count)
    let fixture = try ManagerFixture {
      $0.validator = ETagValidator(mode: mode, parts: .completed, digestSecret: DigestSecret(high: 1, low: 2))
      try change(&$0)
    }
    fixture.network.serve(fixture.url) { server.response(to: $0) }
    return (fixture, server)
  }

  /// Returns the status and the bytes of a response to a request for a range.
  func range(_ range: String?, _ fields: HTTPFields = [:]) async throws -> (status: Int, bytes: Data, fields: HTTPFields) {
    var fields = fields
    if let range { fields[.range] = "bytes=\(range)" }
    let response = try await exchange(fields)
    return (response.head.status.code, try await response.body.collect(), response.head.headerFields)
  }
}

extension ScriptedResponse {
  static func part(
    _ bytes: Range<Int>, of length: Int, tag: String = "\"1\"", cacheControl: String = "max-age=600", _ body: Data
  ) -> ScriptedResponse {
    .response(
      .partialContent,
      fields: [
        .eTag: tag, .contentRange: "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(length)", .cacheControl: cacheControl,
      ], body: body[bytes])
  }
}
