internal import CacheCore
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a ``DownloaderContract`` asks an origin to answer.
public struct ContractAnswer: Sendable {
  /// How an answer ends.
  public enum Ending: Hashable, Sendable {
    /// As it should.
    case complete
    /// The connection closes after so many of the body's bytes, though the head announced all of them.
    case cut(after: Int)
    /// The connection is reset before the head.
    case resetBeforeHead
  }

  /// The status.
  public var status: HTTPResponse.Status
  /// The fields, besides those that frame the body.
  public var fields: HTTPFields
  /// The body.
  public var body: Data
  /// How it ends.
  public var ending: Ending
  /// Whether the head tells the body's length.
  public var statesLength: Bool
  /// What holds the answer back, head and all.
  public var gate: Gate?
  /// What holds the body back when half of it is out.
  public var bodyGate: Gate?

  /// An answer of its parts.
  public init(
    status: HTTPResponse.Status = .ok, fields: HTTPFields = [:], body: Data = Data(), ending: Ending = .complete,
    statesLength: Bool = true, gate: Gate? = nil, bodyGate: Gate? = nil
  ) {
    self.status = status
    self.fields = fields
    self.body = body
    self.ending = ending
    self.statesLength = statesLength
    self.gate = gate
    self.bodyGate = bodyGate
  }
}

/// An origin that a ``DownloaderContract`` can be run against. `LoopbackOrigin` is one for real engines, ``ScriptedDownloader`` is its own.
public protocol ContractOrigin: Sendable {
  /// Answers every request for the returned URL, which is new, as `answer` says.
  func serve(_ answer: ContractAnswer) async throws -> URL
  /// What was asked of a URL, in order.
  func received(at url: URL) async -> [HTTPRequest]
  /// A URL at which nobody listens; nil when there can be none.
  func refusingURL() async throws -> URL?
}

extension ScriptedDownloader: ContractOrigin {
  public func serve(_ answer: ContractAnswer) async throws -> URL {
    let url = try uniqueURL()
    serve(url) { _ in
      guard answer.ending != .resetBeforeHead else { return .failure(.connectionLost) }
      var scripted = ScriptedAnswer.response(answer.status, fields: answer.fields, body: answer.body)
        .chunked(by: max(1, (answer.body.count + 1) / 2))
      if case .cut(let bytes) = answer.ending { scripted = scripted.cut(after: bytes) }
      if !answer.statesLength { scripted = scripted.withoutLength() }
      if let gate = answer.gate { scripted = scripted.held(by: gate) }
      if let gate = answer.bodyGate { scripted = scripted.bodyHeld(by: gate) }
      return scripted
    }
    return url
  }

  public func received(at url: URL) async -> [HTTPRequest] { requests(for: url) }

  public func refusingURL() async throws -> URL? {
    let url = try uniqueURL()
    serve(url) { _ in .failure(.connectionRefused) }
    return url
  }

  private func uniqueURL() throws -> URL {
    let path = Revision.mint().description
    guard let url = URL(string: "http://contract.test/\(path)") else { throw ContractViolation("no URL for \(path)") }
    return url
  }
}
