import ArgumentParser
import Etagere
import Foundation
import Testing

@testable import Thumbnails

@Suite("The list of images and the names of their thumbnails")
struct ImageListTests {
  @Test("folders are searched, except for hidden files and the output")
  func folders() throws {
    let place = try Place()
    for name in ["b.png", "a.jpg", "below/c.webp", ".hidden.png", ".git/d.png", "notes.txt", "out/a.jpg"] {
      try place.write(Data(), name)
    }
    var list = ImageList(except: place.images.appending(path: "out"))
    try list.add(place.images.path)
    try list.add(place.images.appending(path: "a.jpg").path)
    #expect(list.named("webp").map(\.name) == ["a.webp", "b.webp", "below/c.webp"])
  }

  @Test("equal names get a digest, which is the same each time")
  func collisions() throws {
    let place = try Place()
    for name in ["a.png", "a.jpg", "B.png"] { try place.write(Data(), name) }
    var list = ImageList(except: place.output)
    try list.add(place.images.path)
    let names = list.named("jpg").map(\.name)
    #expect(Set(names).count == 3 && names.contains("B.jpg"))
    #expect(names.count { $0.hasPrefix("a-") } == 2)
    #expect(list.named("jpg").map(\.name) == names)
  }

  @Test("a list contains URLs and files, and no name leads out of the output folder")
  func lists() throws {
    let place = try Place()
    let list = place.images.appending(path: "list.txt")
    try Data(
      """
      # images
      https://example.com/a/photo.jpeg?width=900

      https://example.com/%2E%2E%2F%2E%2E%2Fetc%2Fpasswd.png
      https://example.com/
      /srv/images/x.png
      """.utf8
    ).write(to: list)
    var images = ImageList(except: place.output)
    try images.add(list.path)
    let names = images.named("png").map(\.name)
    #expect(names.count == 4 && names.first == "photo.png" && names.last == "x.png" && names.contains("example.png"))
    #expect(names.allSatisfy { !$0.contains("/") && !$0.hasPrefix(".") })
  }

  @Test("a list may have a byte order mark and CRLF, and an invalid line is named")
  func encodings() throws {
    // Given
    let place = try Place()
    func list(_ bytes: Data) throws -> ImageList {
      let file = place.images.appending(path: "list")
      try bytes.write(to: file)
      var list = ImageList(except: place.output)
      try list.add(file.path)
      return list
    }

    // Then
    let marked = try list(Data("\u{FEFF}HTTPS://example.com/a.png\r\n# b\r\n\r\n/srv/ü.png\r\n".utf8))
    #expect(marked.named("jpg").map(\.name) == ["a.jpg", "ü.jpg"])
    let invalid = #expect(throws: CacheError.self) { try list(Data("/a.png\n".utf8) + [0x2F, 0xFC, 0x0A]) }
    #expect(invalid?.reason.contains("line 2 is not UTF-8") == true)
    let noHost = #expect(throws: CacheError.self) { try list(Data("/a.png\n\nhttp://me:secret@\n".utf8)) }
    #expect(noHost?.description.contains("line 3") == true)
    #expect(noHost?.description.contains("secret") == false)
  }

  @Test("a report does not contain the user information of a URL")
  func address() throws {
    let image = SourceImage(url: try #require(URL(string: "https://me:secret@example.com/a.png")), name: "a.jpg")
    #expect(image.address == "https://example.com/a.png")
  }

  @Test("an invalid source is an error")
  func wrong() throws {
    let place = try Place()
    try place.write(Data([0xff, 0xfe, 0, 1]), "binary")
    var list = ImageList(except: place.output)
    for source in ["/no/such/place", place.images.appending(path: "binary").path, "http://"] {
      #expect(throws: CacheError.self) { try list.add(source) }
    }
  }

  @Test("options reach the settings, and invalid values are refused")
  func options() throws {
    let command = try ThumbnailsCommand.parse(["--out", "/o", "--size", "400x300", "--format", "webp", "--jobs", "3", "in"])
    #expect(command.settings.thumbnail.size == .fit(400, 300))
    #expect(command.settings.thumbnail.encoder.format == .webp && command.settings.jobs == 3)
    #expect(command.settings.cache.path == "/o/.thumbnails")
    for wrong in [
      ["--size", "0"], ["--size", "4x4x4"], ["--size", "-3"], ["--format", "bmp"], ["--jobs", "0"], ["--quality", "0"],
      ["--cache", ""], [""], ["--jobs", "9223372036854775808"], ["--size", "99999999999999999999x1"],
    ] {
      #expect(throws: (any Error).self) { try ThumbnailsCommand.parse(["--out", "/o", "in"] + wrong) }
    }
    #expect(throws: (any Error).self) { try ThumbnailsCommand.parse(["--out", "/o"]) }
    #expect(throws: (any Error).self) { try ThumbnailsCommand.parse(["in"]) }
    #expect(throws: (any Error).self) { try ThumbnailsCommand.parse(["--out", "", "in"]) }
  }
}
