internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A scripted downloader is its own origin for all statements that need no wire.
extension ScriptedDownloader: ContractOrigin {
  public var hasSockets: Bool { false }

  public func serve(_ responses: [ContractResponse]) async throws -> URL {
    let scripted = try responses.map { try Self.scripted($0) }
    guard let last = scripted.last else { throw ContractViolation("no response to serve") }
    let url = try uniqueURL()
    let turn = Lock(0)
    serve(url) { _ in
      let index = turn.withLock { turn in
        defer { turn += 1 }
        return turn
      }
      return index < scripted.count ? scripted[index] : last
    }
    return url
  }

  public func received(at url: URL) async -> [ContractRequest] {
    zip(requests(for: url), requestBodies(for: url)).map { ContractRequest(head: $0, body: $1) }
  }

  /// Request bodies are read before the response, so there is nothing to wait for.
  public func waitForRequestBody(at url: URL, bytes: Int) async {}

  public func bodyBytesSent(at url: URL) async -> Int? { nil }

  public func refusingURL() async throws -> URL {
    let url = try uniqueURL()
    serve(url) { _ in .failure(.connectionRefused) }
    return url
  }

  public func unresolvableURL() async throws -> URL {
    let url = try uniqueURL()
    serve(url) { _ in .failure(.hostNotFound) }
    return url
  }

  private static func scripted(_ response: ContractResponse) throws -> ScriptedResponse {
    var scripted = ScriptedResponse.response(response.status, fields: response.fields, body: response.body)
      .chunked(by: max(1, (response.body.count + 1) / 2))
    switch response.ending {
    case .complete, .closesAfterwards: break
    case .cut(let bytes): scripted = scripted.cut(after: bytes)
    case .resetBeforeHead, .closeBeforeHead: scripted = .failure(.connectionLost)
    case .reset, .stall, .trickle, .stallBeforeHead, .cutInHead, .resetInHead, .trickleHead, .endlessHead, .raw:
      throw ContractViolation("a response that ends with \(response.ending) needs a wire")
    }
    switch response.framing {
    case .length: break
    case .chunks, .connection: scripted = scripted.withoutLength()
    case .claimed: throw ContractViolation("a wrong length needs a wire")
    }
    if let gate = response.gate { scripted = scripted.held(by: gate) }
    if let gate = response.bodyGate { scripted = scripted.bodyHeld(by: gate) }
    return scripted
  }

  private func uniqueURL() throws -> URL {
    let path = Revision.random().description
    guard let url = URL(string: "http://contract.test/\(path)") else { throw ContractViolation("no URL for \(path)") }
    return url
  }
}
