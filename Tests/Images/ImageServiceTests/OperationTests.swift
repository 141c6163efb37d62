#if Service
import CacheTesting
import Foundation
import HTTPTypes
import ImageCodecs
import Testing

@testable import ImageService

@Suite("Operations")
struct OperationTests {
  private func parse(_ text: String, presets: [String: ImageOperations] = [:]) throws(CacheError) -> ImageOperations {
    try ImageOperations(text, presets: presets, maximumSide: 4_096)
  }

  @Test(
    "an operation changes the size of an image of 400 × 300 pixels",
    arguments: [
      ("width=200", PixelSize(200, 150)), ("height=150", PixelSize(200, 150)), ("fit=100x100", PixelSize(100, 75)),
      ("fill=100x100", PixelSize(100, 100)), ("fill=100x50:top", PixelSize(100, 50)), ("exact=30x90", PixelSize(30, 90)),
      ("pixels=1200", PixelSize(40, 30)), ("crop=50x60", PixelSize(50, 60)), ("crop=50x60:bottom-left", PixelSize(50, 60)),
      ("crop=50x60:attention", PixelSize(50, 60)), ("rect=10:20:30:40", PixelSize(30, 40)), ("rotate=90", PixelSize(300, 400)),
      ("width=800", PixelSize(400, 300)), ("width=800:enlarge", PixelSize(800, 600)), ("flip=horizontal", PixelSize(400, 300)),
      ("flip=vertical,gray,tint=ff0000,blur=2,radius=20,border=3:00ff0080:5", PixelSize(400, 300)),
      ("circle", PixelSize(300, 300)),
      ("width=100,dpr=2", PixelSize(200, 150)), ("width=200,rotate=270,fit=100x100", PixelSize(75, 100)),
    ])
  func size(_ operations: String, _ size: PixelSize) async throws {
    let fixture = try ServiceFixture()
    try fixture.serve(try DrawnImage.png(400, 300))
    let served = try await fixture.get(operations + ",format=png")
    #expect(served.status == 200)
    #expect(try served.header.size == size)
  }

  @Test(
    "an operation that is not valid gets 400 with its name, and nothing is loaded",
    arguments: [
      ("width=0", "width"), ("width=1000000000", "width"), ("width=", "width"), ("width", "width"), ("width=-1", "width"),
      ("width=4:5", "width"), ("width=99999999999999999999", "width"), ("fit=4", "fit"), ("fit=4x", "fit"), ("fit=0x4", "fit"),
      ("fill=4x4:middle", "fill"), ("rotate=45", "rotate"), ("rotate=0", "rotate"), ("flip=up", "flip"), ("gray=1", "gray"),
      ("tint=ff", "tint"), ("tint=ffffff:2", "tint"), ("blur=0", "blur"), ("blur=1e3", "blur"), ("blur=nan", "blur"),
      ("blur=1000000000", "blur"), ("format=gif", "format"), ("quality=0", "quality"), ("quality=101", "quality"),
      ("dpr=9", "dpr"), ("dpr=0", "dpr"), ("pixels=0", "pixels"), ("rect=1:2:3", "rect"), ("effort=10", "effort"),
      ("preset=none", "preset"), ("sharpen=3", "sharpen"), ("", "name"), ("gray,", "name"), ("original,gray", "original"),
      ("width=auto,width=auto", "width"),
    ])
  func invalid(_ operations: String, _ name: String) async throws {
    let fixture = try ServiceFixture()
    let served = try await fixture.get(operations)
    #expect(served.status == 400)
    #expect(served.problem == "invalidOperation")
    #expect(String(decoding: served.data, as: UTF8.self).contains(name))
    #expect(try fixture.requests().isEmpty)
  }

  @Test(
    "the canonical text is read as the same operations",
    arguments: [
      "width=4", "height=4:enlarge", "fit=4x5", "fill=4x5:top-left", "exact=4x5", "pixels=9", "crop=4x5:attention",
      "rect=1:2:3:4", "rotate=180,flip=vertical", "gray,tint=ff8800:0.25,circle", "border=1.5:ff880080:2.5,blur=3.125",
      "format=webp,quality=7,lossless,progressive,effort=3,background=102030",
    ])
  func canonical(_ text: String) throws {
    let operations = try parse(text)
    #expect(try parse(operations.description) == operations)
  }

  @Test("texts with the same meaning have one canonical text")
  func synonyms() throws {
    #expect(try parse("fill=4x5").description == parse("fill=4x5:center,quality=80").description)
    #expect(try parse("format=webp,width=4").description == parse("width=4,format=webp").description)
    #expect(try parse("blur=2").description == parse("blur=2.0").description)
  }

  @Test("texts with different meanings have different canonical texts")
  func differences() throws {
    let texts = [
      "width=4", "width=5", "width=4:enlarge", "height=4", "fit=4x4", "fill=4x4", "fill=4x4:top", "exact=4x4", "crop=4x4", "gray",
      "blur=1", "blur=1.001", "blur=1,gray", "gray,blur=1", "tint=ff0000", "tint=ff000080", "circle", "radius=1", "lossless",
      "progressive", "quality=79", "effort=1", "background=000000", "format=png", "format=webp", "original",
    ]
    #expect(try Set(texts.map { try parse($0).description }).count == texts.count)
  }

  @Test("a preset adds its steps and replaces the settings before it")
  func presets() throws {
    let avatar = try parse("fill=96x96,circle,format=webp")
    let operations = try parse("rotate=90,quality=50,preset=avatar,gray", presets: ["avatar": avatar])
    #expect(operations == (try parse("rotate=90,fill=96x96,circle,gray,format=webp")))
  }

  @Test("a preset that is not valid is an error of the service's configuration")
  func invalidPreset() throws {
    let error = #expect(throws: CacheError.self) { try ServiceFixture { $0.presets = ["avatar": "fill=0x0"] } }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.reason.contains("avatar") == true)
  }

  @Test("a pixel ratio multiplies lengths, and no side exceeds the limit")
  func pixelRatio() throws {
    let text = "width=3000,radius=2,border=1:000000:3,rect=1:2:3:4"
    let negotiated = try parse(text + ",dpr=2").negotiated(with: [:], formats: [], maximumSide: 4_096)
    #expect(
      negotiated.operations.steps == (try parse("width=4096,radius=4,border=2:000000:6,rect=1:2:3:4")).steps)
  }
}
#endif
