#if Tool
import Etagere
import Foundation
import LoopbackOrigin
import Testing

/// What `--json` says of a picture.
private struct PictureDocument: Decodable {
  struct Image: Decodable {
    var format: String
    var width: Int?
    var height: Int?
    var frames: Int?
    var orientation: Int?
    var colorSpace: String?
    var hasAlpha: Bool?
  }

  struct Cached: Decodable {
    var transform: String?
    var bytes: Int
    var isFresh: Bool
  }

  var source: String?
  var status: Int?
  var bytes: Int?
  var bytesOnWire: Int64?
  var file: String?
  var etag: String?
  var image: Image?
  var cached: [Cached]?
  var error: LoadDocument.Failure?
}

#if VIPS || canImport(ImageIO)
@Suite("etagere: pictures", .timeLimit(.minutes(30)))
struct ImageTests {
  private static func photo(width: Int = 320, channels: PixelBuffer.Channels = .rgb) throws -> Data {
    let pixels = PixelBuffer(size: PixelSize(width, 240), channels: channels) { bytes in
      for index in bytes.indices {
        bytes[index] = UInt8(truncatingIfNeeded: index &* 2_654_435_761 >> 13) / 4 + UInt8(index % 160)
      }
    }
    return try ImageEncoder(channels.hasAlpha ? .png : .jpeg).encode(DecodedImage(try #require(pixels)))
  }

  @Test("get --resize writes the picture, which the next process finds in the cache, byte for byte")
  func resized() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      origin.setRoute("/a.jpg", Route(try Self.photo(), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a.jpg").absoluteString
      func get(_ output: String) async throws -> ToolRun {
        try await place.etagere("get", url, "--resize", "80x", "--format", "webp", "-o", output)
      }
      // When
      let (first, second) = (try await get("1.webp"), try await get("2.webp"))
      // Then
      #expect(first.status == 0 && first.complaints.isEmpty)
      #expect(first.lines.first?.hasPrefix("network        200") == true)
      #expect(first.lines.first?.contains("(80 × 60 WebP, ") == true)
      #expect(second.lines.first?.hasPrefix("disk           200        0 B") == true)
      let header = try ImageHeader(of: place.read("1.webp"))
      #expect(header.size == PixelSize(80, 60) && header.format == .webp)
      #expect(try place.read("1.webp") == place.read("2.webp"))
      #expect(origin.counters.requests == 1)
    }
  }

  @Test("is confirmed by a 304, and made anew when the original has changed")
  func revalidated() async throws {
    try await withOrigin { origin in
      let place = try Workplace()
      func publish(_ width: Int, _ etag: OriginETag) throws {
        origin.setRoute("/a", Route(try Self.photo(width: width), etag: etag, fields: [.cacheControl: "no-cache"]))
      }
      func get() async throws -> PictureDocument {
        let run = try await place.etagere("get", origin.url("/a").absoluteString, "--resize", "80", "--json")
        #expect(run.status == 0 && run.complaints.isEmpty)
        return try #require(try run.documents(PictureDocument.self).first)
      }
      try publish(320, "v1")
      let answers = [try await get(), try await get()]
      try publish(480, "v2")
      let changed = try await get()

      #expect((answers + [changed]).map(\.source) == ["network", "revalidated", "network"])
      #expect((answers + [changed]).map(\.status) == [200, 304, 200])
      #expect((answers + [changed]).map(\.image?.height) == [60, 60, 40])
      #expect(answers[1].bytesOnWire == 0 && answers[0].image?.format == "JPEG")
    }
  }

  @Test(
    "becomes as large as the geometry says",
    arguments: [
      ("80x", [80, 60]), ("x60", [80, 60]), ("80", [80, 60]), ("100x30", [40, 30]), ("50x50^", [50, 50]), ("50x70!", [50, 70]),
      ("900x900", [320, 240]),
    ])
  func geometry(_ geometry: String, _ size: [Int]) async throws {
    let place = try Workplace()
    let url = "data:image/jpeg;base64,\(try Self.photo().base64EncodedString())"
    let run = try await place.etagere("get", url, "--resize", geometry, "-o", "small.png")
    #expect(run.status == 0)
    let header = try ImageHeader(of: place.read("small.png"))
    // The format is the file name's where none is said.
    #expect([header.size.width, header.size.height] == size && header.format == .png)
  }

  @Test("in a folder has a name that ends as its format does; what is no picture is told, and the others are made")
  func folder() async throws {
    try await withOrigin { origin in
      let place = try Workplace()
      origin.setRoute("/a.png", Route(try Self.photo(channels: .rgba)))
      origin.setRoute("/b.jpeg", Route(try Self.photo()))
      origin.setRoute("/c", Route(Data("<html>Sign in</html>".utf8)))
      let urls = ["/a.png", "/b.jpeg", "/c"].map { origin.url($0).absoluteString }
      let run = try await place.etagere("get", urls[0], urls[1], urls[2], "--resize", "20x20", "-o", "out/")
      #expect(run.status == 84)
      #expect(run.complaints.count == 1 && run.complaints[0].hasSuffix("/c: not an image: the bytes are an HTML page"))
      let names = place.files(below: place.path + "/out").map { $0.split(separator: "/").last ?? "" }
      #expect(names == ["a.\(ImageEncoder.automatic.alphaFormat?.fileExtension ?? "")", "b.jpg"])
    }
  }

  @Test("is smaller at a lower quality, and of every quality in the cache")
  func quality() async throws {
    let place = try Workplace()
    let file = place.path + "/a.jpg"
    try Self.photo().write(to: URL(filePath: file))
    for quality in ["20", "90"] {
      let run = try await place.etagere("get", "file://\(file)", "--quality", quality, "--format", "jpeg", "-o", quality)
      #expect(run.status == 0)
    }
    #expect(try place.read("20").count < place.read("90").count)
  }

  @Test("inspect says what a file is")
  func inspectFile() async throws {
    let place = try Workplace()
    try Self.photo(channels: .rgba).write(to: URL(filePath: place.path + "/a"))
    let run = try await place.etagere("inspect", "a")
    #expect(run.status == 0 && run.complaints.isEmpty)
    #expect(
      Array(run.lines.dropLast()) == [
        "format       PNG (image/png)", "size         320 × 240 (0.1 megapixels)", "frames       1",
        "orientation  1 (as stored)", "colours      sRGB, 8 bits, with alpha",
      ])
    #expect(run.lines.last?.hasPrefix("length       ") == true)
    #expect(place.entryFiles.isEmpty)
  }

  @Test("inspect says what is cached of a URL, in which forms")
  func inspectURL() async throws {
    try await withOrigin { origin in
      let place = try Workplace()
      origin.setRoute("/a", Route(try Self.photo(), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a").absoluteString
      let made = try await place.etagere("get", url, "--resize", "40x", "--format", "webp", "--json")
      let bytes = try made.documents(PictureDocument.self).first?.bytes

      let run = try await place.etagere("inspect", url, "--json")

      let document = try #require(try run.documents(PictureDocument.self).first)
      #expect(document.source == "disk" && document.status == 200 && document.etag == "\"v1\"")
      #expect(document.image?.format == "JPEG" && document.image?.width == 320 && document.image?.orientation == 1)
      #expect(document.cached?.map { $0.transform == nil } == [true, false] && document.cached?.last?.bytes == bytes)
      #expect(document.cached?.allSatisfy(\.isFresh) == true && document.cached?.last?.transform?.contains("fit(40x)") == true)
      let lines = try await place.etagere("inspect", url).lines
      #expect(lines.contains("etag         \"v1\"") && lines.count { $0.hasPrefix("cached       ") } == 2)
    }
  }

  @Test("inspect says why something is no picture, and what is known of it all the same")
  func inspectOther() async throws {
    let place = try Workplace()
    try place.write("<!DOCTYPE html>", "page.jpg")
    let page = try await place.etagere("inspect", "page.jpg")
    #expect(page.status == 84 && page.lines == ["length       15 B"])
    #expect(page.complaints == ["etagere: page.jpg: not an image: the bytes are an HTML page"])
    let none = try await place.etagere("inspect", "nothing.png", "--json")
    #expect(none.status == 37 && none.complaints == ["etagere: nothing.png: can't be read: No such file or directory"])
    #expect(try none.documents(PictureDocument.self).first?.error?.exitStatus == 37)
  }
}
#else
@Suite("etagere: pictures without an engine", .timeLimit(.minutes(30)))
struct ImageTests {
  private let gif = "data:image/gif;base64,R0lGODlhAQABAAAAACw="

  @Test("can't be made or inspected, and what is said tells how to get one")
  func engine() async throws {
    let place = try Workplace()
    for arguments in [["get", gif, "--resize", "4x"], ["inspect", gif]] {
      let run = try await place.run(arguments + ["--cache-dir", place.cache])
      #expect(run.status == 84 && run.complaints.count == 1)
      #expect(run.complaints.first?.contains("trait VIPS") == true)
    }
    // The format is told by the first bytes.
    #expect(try await place.etagere("inspect", gif).lines.first == "format       GIF (image/gif)")
  }
}
#endif
#endif
