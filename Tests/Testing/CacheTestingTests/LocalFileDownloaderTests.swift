import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Local file downloader")
final class LocalFileDownloaderTests {
  private let outer: URL
  private let folder: URL
  private let network: LocalFileDownloader

  init() throws {
    outer = URL(
      filePath: FileManager.default.resolvedTemporaryPath + "/etagere-served-\(Revision.random())", directoryHint: .isDirectory)
    folder = outer.appending(path: "served", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder.appending(path: "sub"), withIntermediateDirectories: true)
    try Data("picture".utf8).write(to: folder.appending(path: "a.png"))
    try Data("below".utf8).write(to: folder.appending(path: "sub/b c.txt"))
    try Data("secret".utf8).write(to: outer.appending(path: "secret.txt"))
    network = LocalFileDownloader(folder: folder, fields: [.cacheControl: "max-age=60"])
  }

  deinit { try? FileManager.default.removeItem(at: outer) }

  private func url(_ path: String) throws -> URL { try #require(URL(string: "https://any.host\(path)")) }

  @Test(
    "files are served with type, length, tag, date and the configured fields",
    arguments: [
      ("/a.png", "image/png", "picture"), ("/sub/b%20c.txt", "text/plain", "below"), ("/a.png?query", "image/png", "picture"),
    ])
  func serves(_ path: String, _ type: String, _ text: String) async throws {
    let response = try await network.get(url(path))
    let fields = response.head.headerFields
    #expect(response.head.status == .ok)
    #expect(fields[.contentType] == type)
    #expect(fields[.contentLength] == String(text.utf8.count))
    #expect(fields[.cacheControl] == "max-age=60")
    #expect(fields[.eTag]?.hasPrefix("\"") == true)
    #expect(fields[.lastModified].flatMap { HTTPDate($0, receivedAt: SystemClock().now) } != nil)
    #expect(try await response.body.collect() == Data(text.utf8))
    #expect(response.metrics().bytesOnWire == Int64(text.utf8.count))
  }

  @Test(
    "a matching entity tag gives a 304: alone, weak, in a list, or any",
    arguments: ["TAG", "W/TAG", "\"x\", TAG", "\"x\" ,\tW/TAG ", "*"])
  func notModifiedByTag(_ condition: String) async throws {
    let tag = try #require(try await network.get(url("/a.png")).head.headerFields[.eTag])
    let response = try await network.get(
      url("/a.png"),
      [.ifNoneMatch: condition.replacingOccurrences(of: "TAG", with: tag), .ifModifiedSince: "Sun, 06 Nov 1994 08:49:37 GMT"])
    #expect(response.head.status == .notModified)
    #expect(response.head.headerFields[.eTag] == tag)
    #expect(try await response.body.collect().isEmpty)
    #expect(response.metrics().bytesOnWire == 0)
  }

  @Test("a matching date gives a 304 unless a tag differs (RFC 9110 §13.1.3)")
  func notModifiedByDate() async throws {
    let date = try #require(try await network.get(url("/a.png")).head.headerFields[.lastModified])
    #expect(try await network.get(url("/a.png"), [.ifModifiedSince: date]).head.status == .notModified)
    #expect(try await network.get(url("/a.png"), [.ifModifiedSince: "Sun, 06 Nov 1994 08:49:37 GMT"]).head.status == .ok)
    #expect(try await network.get(url("/a.png"), [.ifModifiedSince: "no date"]).head.status == .ok)
    #expect(try await network.get(url("/a.png"), [.ifNoneMatch: "\"x\"", .ifModifiedSince: date]).head.status == .ok)
  }

  @Test("a changed file gets another tag, even within a second and with the same length")
  func changes() async throws {
    // Given
    let file = folder.appending(path: "a.png").path(percentEncoded: false)
    var tags: Set<String> = []

    // When: three versions of the same length, a millisecond apart, and a fourth that is longer.
    for (index, text) in ["first!!", "second!", "third!!", "longer than before"].enumerated() {
      try Data(text.utf8).write(to: folder.appending(path: "a.png"))
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000 + Double(min(index, 2)) / 1_000)], ofItemAtPath: file)
      let response = try await network.get(url("/a.png"), [.ifNoneMatch: tags.joined(separator: ", ")])
      #expect(response.head.status == .ok)
      #expect(try await response.body.collect() == Data(text.utf8))
      tags.insert(try #require(response.head.headerFields[.eTag]))
    }

    // Then
    #expect(tags.count == 4)
  }

  @Test(
    "missing files and files outside the folder give a 404",
    arguments: [
      "/missing", "/", "/sub", "/sub/", "/../secret.txt", "/sub/../../secret.txt", "/%2e%2e/secret.txt", "/%2E%2E%2Fsecret.txt",
      "/sub/%2e%2e/a.png", "/./a.png", "/a.png%00.txt", "/link.txt", "/outside/secret.txt", "/..%5Csecret.txt",
    ])
  func notFound(_ path: String) async throws {
    try FileManager.default.createSymbolicLink(
      at: folder.appending(path: "link.txt"), withDestinationURL: outer.appending(path: "secret.txt"))
    try FileManager.default.createSymbolicLink(at: folder.appending(path: "outside"), withDestinationURL: outer)
    let response = try await network.get(url(path))
    #expect(response.head.status == .notFound)
    #expect(try await response.body.collect().isEmpty)
  }

  @Test("links within the folder, and to the folder, are followed")
  func linksInside() async throws {
    try FileManager.default.createSymbolicLink(
      at: folder.appending(path: "alias.png"), withDestinationURL: folder.appending(path: "a.png"))
    #expect(try await network.text(url("/alias.png")) == "picture")

    let link = outer.appending(path: "linked")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder)
    #expect(try await LocalFileDownloader(folder: link).text(url("/a.png")) == "picture")
  }

  @Test("a sibling folder whose name has the folder's name as a prefix is outside")
  func sibling() async throws {
    let sibling = outer.appending(path: "served-too", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: sibling, withIntermediateDirectories: true)
    try Data("secret".utf8).write(to: sibling.appending(path: "s.txt"))
    try FileManager.default.createSymbolicLink(at: folder.appending(path: "s"), withDestinationURL: sibling)
    #expect(try await network.get(url("/s/s.txt")).head.status == .notFound)
  }

  @Test("every request fails while the downloader is offline, and is recorded")
  func offline() async throws {
    network.isOffline = true
    let address = try url("/a.png")
    #expect(await failure { _ = try await network.get(address) }?.code == .offline)
    network.isOffline = false
    #expect(try await network.text(address) == "picture")
    #expect(network.requests.map(\.path) == ["/a.png", "/a.png"])
  }

  @Test("HEAD gives only the head, and other methods are refused", arguments: [HTTPRequest.Method.head, .post, .put])
  func methods(_ method: HTTPRequest.Method) async throws {
    let response = try await network.get(url("/a.png"), method: method)
    #expect(response.head.status == (method == .head ? .ok : .methodNotAllowed))
    #expect(response.head.headerFields[.contentLength] == (method == .head ? "7" : "0"))
    #expect(try await response.body.collect().isEmpty)
  }
}
