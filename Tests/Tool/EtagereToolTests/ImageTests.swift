#if Tool
import Etagere
import Foundation
import LoopbackOrigin
import Testing

/// The JSON document of an image.
private struct ImageDocument: Decodable {
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
@Suite("etagere-cli: images", .timeLimit(.minutes(30)))
struct ImageTests {
  /// A format other than JPEG that the engine writes. ImageIO does not write WebP.
  private static var format: ImageFormat { ImageEncoder.isWritten(.webp) ? .webp : .png }

  private static func photo(width: Int = 320, channels: PixelBuffer.Channels = .rgb) throws -> Data {
    let pixels = PixelBuffer(size: PixelSize(width, 240), channels: channels) { bytes in
      for index in bytes.indices {
        bytes[index] = UInt8(truncatingIfNeeded: index &* 2_654_435_761 >> 13) / 4 + UInt8(index % 160)
      }
    }
    return try ImageEncoder(channels.hasAlpha ? .png : .jpeg).encode(DecodedImage(try #require(pixels)))
  }

  @Test("get --resize writes an image, and the next process finds the same bytes in the cache")
  func resized() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setRoute("/a.jpg", Route(try Self.photo(), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a.jpg").absoluteString
      func get(_ output: String) async throws -> ToolRun {
        try await fixture.etagere("get", url, "--resize", "80x", "--format", Self.format.fileExtension, "-o", output)
      }
      // When
      let (first, second) = (try await get("1"), try await get("2"))
      // Then
      #expect(first.status == 0 && first.errors.isEmpty)
      #expect(first.lines.first?.hasPrefix("network         200") == true)
      #expect(first.lines.first?.contains("(80 × 60 \(Self.format.name), ") == true)
      #expect(second.lines.first?.hasPrefix("disk            200         0 B") == true)
      let header = try ImageHeader(of: fixture.read("1"))
      #expect(header.size == PixelSize(80, 60) && header.format == Self.format)
      #expect(try fixture.read("1") == fixture.read("2"))
      #expect(origin.counters.requests == 1)
    }
  }

  @Test("a 304 keeps a resized image, and a changed original replaces it")
  func revalidated() async throws {
    try await withOrigin { origin in
      let fixture = try ToolFixture()
      func publish(_ width: Int, _ etag: OriginETag) throws {
        origin.setRoute("/a", Route(try Self.photo(width: width), etag: etag, fields: [.cacheControl: "no-cache"]))
      }
      func get() async throws -> ImageDocument {
        let run = try await fixture.etagere("get", origin.url("/a").absoluteString, "--resize", "80", "--json")
        #expect(run.status == 0 && run.errors.isEmpty)
        return try #require(try run.documents(ImageDocument.self).first)
      }
      try publish(320, "v1")
      let unchanged = [try await get(), try await get()]
      try publish(480, "v2")
      let changed = try await get()

      #expect((unchanged + [changed]).map(\.source) == ["network", "revalidated", "network"])
      #expect((unchanged + [changed]).map(\.status) == [200, 304, 200])
      #expect((unchanged + [changed]).map(\.image?.height) == [60, 60, 40])
      #expect(unchanged[1].bytesOnWire == 0 && unchanged[0].image?.format == "JPEG")
    }
  }

  @Test(
    "--resize determines the size of the image",
    arguments: [
      ("80x", [80, 60]), ("x60", [80, 60]), ("80", [80, 60]), ("100x30", [40, 30]), ("50x50^", [50, 50]), ("50x70!", [50, 70]),
      ("900x900", [320, 240]),
    ])
  func geometry(_ geometry: String, _ size: [Int]) async throws {
    let fixture = try ToolFixture()
    let url = "data:image/jpeg;base64,\(try Self.photo().base64EncodedString())"
    let run = try await fixture.etagere("get", url, "--resize", geometry, "-o", "small.png")
    #expect(run.status == 0)
    let header = try ImageHeader(of: fixture.read("small.png"))
    // Without --format, the file name determines the format.
    #expect([header.size.width, header.size.height] == size && header.format == .png)
  }

  @Test("an image in a folder has the extension of its format, and a response that is not an image is reported")
  func folder() async throws {
    try await withOrigin { origin in
      let fixture = try ToolFixture()
      origin.setRoute("/a.png", Route(try Self.photo(channels: .rgba)))
      origin.setRoute("/b.jpeg", Route(try Self.photo()))
      origin.setRoute("/c", Route(Data("<html>Sign in</html>".utf8)))
      let urls = ["/a.png", "/b.jpeg", "/c"].map { origin.url($0).absoluteString }
      let run = try await fixture.etagere("get", urls[0], urls[1], urls[2], "--resize", "20x20", "-o", "out/")
      #expect(run.status == 65)
      #expect(run.errors.count == 1 && run.errors[0].contains("/c: ") && run.errors[0].hasSuffix("HTML page"))
      let names = fixture.files(below: fixture.path + "/out").map { $0.split(separator: "/").last ?? "" }
      #expect(names == ["a.\(ImageEncoder.automatic.alphaFormat?.fileExtension ?? "")", "b.jpg"])
    }
  }

  @Test("a lower quality makes a smaller file")
  func quality() async throws {
    let fixture = try ToolFixture()
    let file = fixture.path + "/a.jpg"
    try Self.photo().write(to: URL(filePath: file))
    for quality in ["20", "90"] {
      let run = try await fixture.etagere("get", "file://\(file)", "--quality", quality, "--format", "jpeg", "-o", quality)
      #expect(run.status == 0)
    }
    #expect(try fixture.read("20").count < fixture.read("90").count)
  }

  @Test("inspect shows the properties of a file")
  func inspectFile() async throws {
    let fixture = try ToolFixture()
    try Self.photo(channels: .rgba).write(to: URL(filePath: fixture.path + "/a"))
    let run = try await fixture.etagere("inspect", "a")
    #expect(run.status == 0 && run.errors.isEmpty)
    #expect(
      Array(run.lines.dropLast()) == [
        "format       PNG (image/png)", "dimensions   320 × 240 (0.1 megapixels)", "frames       1",
        "orientation  1 (as stored)", "color        sRGB, 8 bits, with alpha",
      ])
    #expect(run.lines.last?.hasPrefix("size         ") == true)
    #expect(fixture.entryFiles.isEmpty)
  }

  @Test("inspect shows what is cached of a URL, and no internal key")
  func inspectURL() async throws {
    try await withOrigin { origin in
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(try Self.photo(), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a").absoluteString
      let made = try await fixture.etagere("get", url, "--resize", "40x", "--format", Self.format.fileExtension, "--json")
      let bytes = try made.documents(ImageDocument.self).first?.bytes

      let run = try await fixture.etagere("inspect", url, "--json")

      let document = try #require(try run.documents(ImageDocument.self).first)
      #expect(document.source == "disk" && document.status == 200 && document.etag == "\"v1\"")
      #expect(document.image?.format == "JPEG" && document.image?.width == 320 && document.image?.orientation == 1)
      #expect(document.cached?.map { $0.transform == nil } == [true, false] && document.cached?.last?.bytes == bytes)
      let variant = "image 40 × 30 \(Self.format.name)"
      #expect(document.cached?.allSatisfy(\.isFresh) == true && document.cached?.last?.transform == variant)
      let lines = try await fixture.etagere("inspect", url).lines
      #expect(lines.contains("etag         \"v1\"") && lines.count { $0.hasPrefix("cached       ") } == 2)
      #expect(lines.contains { $0.hasSuffix("fresh, original") } && lines.contains { $0.hasSuffix("fresh, \(variant)") })
      #expect(lines.contains("response     200, disk"))
    }
  }

  @Test("inspect reports that a file is not an image, and shows its length")
  func inspectOther() async throws {
    let fixture = try ToolFixture()
    try fixture.write("<!DOCTYPE html>", "page.jpg")
    let page = try await fixture.etagere("inspect", "page.jpg")
    #expect(page.status == 65 && page.lines == ["size         15 B"])
    #expect(page.errors.count == 1)
    #expect(page.errors.first?.hasPrefix("etagere-cli: page.jpg: ") == true && page.errors.first?.hasSuffix("HTML page") == true)
    let none = try await fixture.etagere("inspect", "nothing.png", "--json")
    #expect(none.status == 66 && none.errors == ["etagere-cli: nothing.png: cannot read the file: No such file or directory"])
    #expect(try none.documents(ImageDocument.self).first?.error?.exitStatus == 66)
  }
}
#else
@Suite("etagere-cli: images without an engine", .timeLimit(.minutes(30)))
struct ImageTests {
  private let gif = "data:image/gif;base64,R0lGODlhAQABAAAAACw="

  @Test("an image cannot be made or inspected, and the error names the trait")
  func engine() async throws {
    let fixture = try ToolFixture()
    for arguments in [["get", gif, "--resize", "4x"], ["inspect", gif]] {
      let run = try await fixture.run(arguments + ["--cache-dir", fixture.cache])
      #expect(run.status == 69 && run.errors.count == 1)
      #expect(run.errors.first?.contains("trait VIPS") == true)
    }
    // The first bytes identify the format.
    #expect(try await fixture.etagere("inspect", gif).lines.first == "format       GIF (image/gif)")
  }
}
#endif
#endif
