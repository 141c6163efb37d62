import CacheCore
import CacheTesting
import Foundation
import HTTPTypes

/// The folder of a `LocalFileDownloader` as an origin, which responds only with files.
struct FolderOrigin: ContractOrigin {
  enum UnservableResponse: Error {
    /// No file produces such a response.
    case response
  }

  /// The statements that files can satisfy, listed so that a change on either side is noticed.
  static let kept = [
    "a body of any size arrives unchanged", "parallel requests for different URLs receive their own bodies",
    "method, target and fields are sent unchanged",
    "no field is added that would change the cached response", "a task that is already cancelled sends nothing",
    "a body that may be collected can also be read as a stream, once",
    "a timeout that does not expire has no effect", "cancellation at any time ends a download once and affects no other",
  ]

  let folder: URL
  let network: LocalFileDownloader

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "etagere-contract-\(Revision.random())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    network = LocalFileDownloader(folder: folder)
  }

  func remove() { try? FileManager.default.removeItem(at: folder) }

  var hasSockets: Bool { false }

  func serve(_ responses: [ContractResponse]) async throws -> URL {
    guard responses.count == 1, let response = responses.first, response.status == .ok, response.ending == .complete,
      response.framing == .length, response.gate == nil, response.bodyGate == nil, response.fields.isEmpty
    else { throw UnservableResponse.response }
    let name = Revision.random().description
    try response.body.write(to: folder.appending(path: name))
    guard let url = URL(string: "http://folder.test/\(name)") else { throw UnservableResponse.response }
    return url
  }

  func received(at url: URL) async -> [ContractRequest] {
    network.requests.filter { $0.path == url.path }.map { ContractRequest(head: $0) }
  }

  func waitForRequestBody(at url: URL, bytes: Int) async {}
  func bodyBytesSent(at url: URL) async -> Int? { nil }
  func refusingURL() async throws -> URL { throw UnservableResponse.response }
  func unresolvableURL() async throws -> URL { throw UnservableResponse.response }
}
