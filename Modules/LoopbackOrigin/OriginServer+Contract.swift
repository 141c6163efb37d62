#if Origin
public import CacheTesting
public import HTTPTypes
internal import CacheCore
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An engine with sockets is run through `DownloaderContract` against this origin.
extension OriginServer: ContractOrigin {
  public func serve(_ answer: ContractAnswer) async throws -> URL {
    let path = "/contract/\(Revision.mint())"
    var delivery = OriginDelivery(gate: answer.gate)
    delivery.bodyGate = answer.bodyGate
    delivery.bodyGateOffset = answer.body.count / 2
    if !answer.statesLength { delivery.framing = .chunked(of: 16_384) }
    switch answer.ending {
    case .complete: break
    case .cut(let bytes): delivery.fault = .cut(afterBodyBytes: bytes)
    case .resetBeforeHead: delivery.fault = .resetBeforeHead
    }
    setRoute(
      path,
      Route(
        OriginAnswer(
          answer.body, fields: answer.fields, status: answer.status, honoursConditions: false, delivery: delivery)))
    return url(path)
  }

  public func received(at url: URL) async -> [HTTPRequest] { requests(for: url.path(percentEncoded: true)).map(\.head) }

  /// The port of an origin that has stopped: nobody listens there any more.
  public func refusingURL() async throws -> URL? {
    let former = try await OriginServer.start()
    await former.stop()
    return former.url("/refused")
  }
}
#endif
