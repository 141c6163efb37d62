#if Service
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import ImageService

@Suite("Images from a folder")
final class FolderSourceTests {
  private let parent = FileManager.default.temporaryDirectory.appending(path: "image-folder-\(UUID().uuidString)")
  private let folder: URL
  private let fixture: ServiceFixture

  init() throws {
    folder = parent.appending(path: "images")
    try FileManager.default.createDirectory(at: folder.appending(path: "cats"), withIntermediateDirectories: true)
    let data = try DrawnImage.png(40, 30)
    for name in ["images/a b.png", "images/cats/ä.png", "images/.hidden.png", "secret.png"] {
      try data.write(to: parent.appending(path: name))
    }
    try FileManager.default.createSymbolicLink(
      at: folder.appending(path: "link.png"), withDestinationURL: parent.appending(path: "secret.png"))
    for (link, target) in [("visible.png", ".hidden.png"), ("pictures", ".private"), ("cat.png", "cats/ä.png")] {
      try FileManager.default.createSymbolicLink(
        atPath: folder.appending(path: link).path(percentEncoded: false), withDestinationPath: target)
    }
    try FileManager.default.createDirectory(at: folder.appending(path: ".private"), withIntermediateDirectories: false)
    try data.write(to: folder.appending(path: ".private/a.png"))
    guard mkfifo(folder.appending(path: "fifo.png").path(percentEncoded: false), 0o600) == 0 else {
      throw CacheError(.fileSystem, reason: "cannot make a FIFO", errno: errno)
    }
    let path = folder.path(percentEncoded: false)
    fixture = try ServiceFixture {
      var source = try ImageSource.folder(path, named: "site")
      source.cacheControl = "max-age=60"
      $0.sources = [source]
    }
  }

  deinit { try? FileManager.default.removeItem(at: parent) }

  @Test("files of the folder are sources", arguments: ["site/a b.png", "site/cats/ä.png", "SITE/a b.png", "site/cat.png"])
  func files(_ source: String) async throws {
    let served = try await fixture.get("width=20,format=png", of: source)
    #expect(served.status == 200)
    #expect(try served.header.size == PixelSize(20, 15))
    #expect(served.fields[.cacheControl] == "max-age=60")
    #expect(try await fixture.get("width=20,format=png", of: source).response.servedFrom == .memory)
  }

  @Test(
    "no spelling of a folder's host is a source",
    arguments: [
      "http://site.folder.invalid/a%20b.png", "http://site.folder%2einvalid/a%20b.png", "http://SITE.Folder.INVALID/a%20b.png",
      "https://site.folder.invalid./a%20b.png", "http://site.folder%2Einvalid%2e/a%20b.png",
      "http://s%69te.folder.invalid:80/a%20b.png",
      "http://site．folder．invalid/a%20b.png", "http://site。folder。invalid/a%20b.png", "http://ſite.folder.invalid/a%20b.png",
      "http://%C5%BFite.folder.invalid/a%20b.png", "http://ｓｉｔｅ.folder.invalid/a%20b.png", " http://site.folder.invalid/a b.png ",
      "http://site.folder.invalid\\@photos.example.com/a.png", "http://other.folder.invalid/a.png",
    ])
  func hosts(_ source: String) async throws {
    let served = try await fixture.get("original", of: source)
    #expect(served.status == 400)
    #expect(served.problem == "invalidSource")
  }

  @Test(
    "a folder has one name, in capital or small letters",
    arguments: [
      "ſite/a b.png", "ｓite/a b.png", "si%74e/a b.png", "site./a b.png", "site%2e/a b.png", "a.site/a b.png", "site:80/a b.png",
    ])
  func names(_ source: String) async throws {
    #expect(try await fixture.get("original", of: source).status == 400)
  }

  @Test(
    "other files, folders, special files, and links to hidden files are not found",
    arguments: [
      "site/none.png", "site/link.png", "site/cats", "site/cats/", "site/a b.png/", "other/a.png", "site/fifo.png",
      "site/visible.png", "site/pictures/a.png",
    ])
  func notFound(_ source: String) async throws {
    let served = try await fixture.get("width=20", of: source)
    #expect(served.status == 404 || served.status == 403)
    #expect(served.problem == "sourceNotFound" || served.problem == "sourceRefused")
  }

  @Test("a changed file makes a new result when the old one is stale")
  func change() async throws {
    let first = try await fixture.get("width=20", of: "site/a b.png")
    try DrawnImage.png(40, 30, red: 5).write(to: folder.appending(path: "a b.png"))
    #expect(try await fixture.get("width=20", of: "site/a b.png").data == first.data)
    fixture.clock.advance(by: .seconds(90))
    #expect(try await fixture.get("width=20", of: "site/a b.png").data != first.data)
  }

  @Test("a client that has a file gets 304 until the file changes")
  func notModified() async throws {
    let first = try await fixture.get("original", of: "site/a b.png")
    let tag = try #require(first.fields[.eTag])
    let second = try await fixture.get("original", of: "site/a b.png", [.ifNoneMatch: tag])
    #expect(second.status == 304 && second.data.isEmpty)
    try DrawnImage.png(40, 30, red: 5).write(to: folder.appending(path: "a b.png"))
    let third = try await fixture.get("original", of: "site/a b.png", [.ifNoneMatch: tag])
    #expect(third.status == 200 && third.data != first.data)
  }

  @Test("an accent after a period or a slash hides neither", arguments: ["site/.\u{301}a.png", "site/cats/../\u{301}a.png"])
  func accents(_ source: String) async throws {
    let data = try DrawnImage.png(40, 30)
    for name in [".\u{301}a.png", "\u{301}a.png"] { try data.write(to: folder.appending(path: name)) }
    let served = try await fixture.get("width=20", of: source)
    #expect(served.status == 400)
    #expect(served.problem == "invalidSource")
  }

  @Test(
    "a source is read from its own text",
    arguments: ["site/a b.png", "site/50%25.png", "site/cats/ä.png", "https://photos.example.com/a%20b.png?c=%25"])
  func text(_ source: String) throws {
    let url = try SourceReference(source).url
    #expect(SourceReference.text(of: url) == source)
    #expect(try SourceReference(SourceReference.text(of: url)).url == url)
  }

  @Test("a purge of a file removes its results")
  func purge() async throws {
    _ = try await fixture.get("width=20", of: "site/a b.png")
    #expect(try await fixture.service.purge(source: "site/a b.png") == 1)
    #expect(try await fixture.get("width=20", of: "site/a b.png").response.servedFrom == .network)
  }

  @Test("a folder that does not exist, or has an invalid name, is refused")
  func configurations() throws {
    #expect(throws: CacheError.self) { try ImageSource.folder("/nowhere/at/all", named: "a") }
    let path = folder.path(percentEncoded: false)
    for name in ["", "a.b", "a/b", "ä"] { #expect(throws: CacheError.self) { try ImageSource.folder(path, named: name) } }
  }
}
#endif
