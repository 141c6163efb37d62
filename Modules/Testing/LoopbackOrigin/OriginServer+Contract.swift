#if Origin
public import CacheTesting
internal import CacheCore
internal import HTTPTypes
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The conformance that lets `DownloaderContract` test engines with sockets against this origin.
extension OriginServer: ContractOrigin {
  public var hasSockets: Bool { true }

  public func serve(_ responses: [ContractResponse]) async throws -> URL {
    let path = "/contract/\(Revision.random())"
    guard !responses.isEmpty else { throw ContractViolation("the origin has no response to serve") }
    setRoute(path, Route(inTurn: responses.map(Self.originResponse)))
    return url(path)
  }

  public func received(at url: URL) async -> [ContractRequest] {
    requests(for: url.path(percentEncoded: true)).map { ContractRequest(head: $0.head, body: $0.body, connection: $0.connection) }
  }

  public func waitForRequestBody(at url: URL, bytes: Int) async {
    await waitForRequestBody(path: url.path(percentEncoded: true), bytes: bytes)
  }

  public func bodyBytesSent(at url: URL) async -> Int? { counters(for: url.path(percentEncoded: true)).bodyBytesSent }

  /// Returns a URL with port 1 of this machine. The port of a stopped origin is not suitable, because the system may assign it to
  /// another one.
  public func refusingURL() async throws -> URL {
    guard let url = URL(string: "http://127.0.0.1:1/refused") else { throw ContractViolation("invalid URL for a port") }
    return url
  }

  /// Returns a URL with a name that RFC 6761 §6.4 reserves.
  public func unresolvableURL() async throws -> URL {
    guard let url = URL(string: "http://no-such-host.invalid/") else { throw ContractViolation("invalid URL for a name") }
    return url
  }

  private static func originResponse(_ response: ContractResponse) -> OriginResponse {
    var delivery = OriginDelivery(
      interim: response.interim.map { OriginDelivery.Interim($0.status, fields: $0.headerFields) }, gate: response.gate,
      bodyGate: response.bodyGate, bodyGateOffset: response.body.count / 2, fault: fault(response.ending))
    switch response.framing {
    case .length: break
    case .chunks: delivery.framing = .chunked(of: 16_384)
    case .connection: delivery.framing = .untilClose
    case .claimed(let length): delivery.framing = .claimedLength(length)
    }
    return OriginResponse(
      response.body, fields: response.fields, status: response.status, honorsConditions: false, delivery: delivery)
  }

  private static func fault(_ ending: ContractResponse.Ending) -> OriginFault? {
    switch ending {
    case .complete: nil
    case .closesAfterwards: .closeAfterwards
    case .cut(let bytes): .cut(afterBodyBytes: bytes)
    case .reset(let bytes): .reset(afterBodyBytes: bytes)
    case .stall(let bytes): .stall(afterBodyBytes: bytes)
    case .trickle(let pause): .trickle(every: pause)
    case .closeBeforeHead: .closeBeforeHead
    case .resetBeforeHead: .resetBeforeHead
    case .stallBeforeHead: .stallBeforeHead
    case .cutInHead: .closeMidHead
    case .resetInHead: .resetMidHead
    case .trickleHead(let pause): .trickleHead(every: pause)
    case .endlessHead: .endlessHead
    case .raw(let bytes): .raw(bytes)
    }
  }
}
#endif
