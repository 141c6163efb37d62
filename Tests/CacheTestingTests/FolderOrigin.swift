import CacheCore
import CacheTesting
import Foundation
import HTTPTypes

/// The folder of a `LocalFileDownloader`, as an origin: it answers with files, and with nothing else.
struct FolderOrigin: ContractOrigin {
  enum Unanswerable: Error {
    /// No file makes such an answer.
    case answer
  }

  /// What files can answer, so that a change of either side shows.
  static let kept = [
    "the original bytes arrive, whatever their number", "many URLs in parallel each get their own bytes",
    "method, target and fields go out as they are",
    "no field goes out that would bring another answer into a cache", "a task that is cancelled beforehand sends nothing",
    "a time-out that does not come to pass changes nothing", "cancels at any moment end each download once, and harm no other",
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

  func serve(_ answers: [ContractAnswer]) async throws -> URL {
    guard answers.count == 1, let answer = answers.first, answer.status == .ok, answer.ending == .complete,
      answer.framing == .length, answer.gate == nil, answer.bodyGate == nil, answer.fields.isEmpty
    else { throw Unanswerable.answer }
    let name = Revision.random().description
    try answer.body.write(to: folder.appending(path: name))
    guard let url = URL(string: "http://folder.test/\(name)") else { throw Unanswerable.answer }
    return url
  }

  func received(at url: URL) async -> [ContractRequest] {
    network.requests.filter { $0.path == url.path }.map { ContractRequest(head: $0) }
  }

  func waitForRequestBody(at url: URL, bytes: Int) async {}
  func bodyBytesSent(at url: URL) async -> Int? { nil }
  func refusingURL() async throws -> URL { throw Unanswerable.answer }
  func unresolvableURL() async throws -> URL { throw Unanswerable.answer }
}
