// A folder instead of the network, with entity tags, 304s and 404s.
// `swift run --package-path Examples/FolderAsNetwork FolderAsNetwork`
import CacheTesting
import Etagere
import Foundation

func expect(_ isTrue: Bool, _ what: String) {
  print(isTrue ? "  as expected: \(what)" : "  WRONG, expected: \(what)")
  if !isTrue { exit(1) }
}

func run(in folder: URL) async throws {
  let file = folder.appending(path: "motd.txt")
  try Data("Good morning".utf8).write(to: file)
  guard let url = URL(string: "https://any.host/motd.txt") else { return }

  let network = LocalFileDownloader(folder: folder)
  let manager = ResourceManager(try .standard(folder: nil, downloader: network))

  func load() async throws(CacheError) -> Resource<Data> {
    let resource = try await manager.load(url)
    let text = String(decoding: resource.data, as: UTF8.self)
    print("  \"\(text)\": \(resource.source), \(resource.validation), \(resource.bytesOnWire) bytes on the wire")
    return resource
  }

  print("The first load")
  let first = try await load()
  expect(first.source == .network && first.validation == .notAttempted, "loaded from the folder")

  print("The second load: the response states no lifetime, so it is revalidated with a 304")
  let second = try await load()
  expect(second.source == .revalidated && second.validation == .notModified, "confirmed, without a body")
  expect(second.revision == first.revision, "the same body")
  expect(network.requests.last?.headerFields[.ifNoneMatch] != nil, "the request has If-None-Match")

  print("The file changes")
  try Data("Good afternoon".utf8).write(to: file)
  let third = try await load()
  expect(third.source == .network && third.validation == .modified, "a new response replaces the stored one")
  expect(third.revision != first.revision, "another body")

  print("The network goes down")
  network.isOffline = true
  let fourth = try await load()
  expect(fourth.validation == .failed && fourth.data == third.data, "the stored response, which could not be confirmed")

  print("The network is back, and a file does not exist")
  network.isOffline = false
  do throws(CacheError) {
    _ = try await manager.load(url.deletingLastPathComponent().appending(path: "none.txt"))
    expect(false, "an error")
  } catch {
    print("  \(error)")
    expect(error.code == .unacceptableStatus && error.status == 404, "an error with the URL and the status 404")
  }
}

let folder = FileManager.default.temporaryDirectory.appending(path: "folder-as-network-\(UUID().uuidString)")
do {
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  try await run(in: folder)
} catch {
  expect(false, "no error (\(error))")
}
