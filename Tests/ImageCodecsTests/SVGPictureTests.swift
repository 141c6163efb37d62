#if VIPS
import CacheCore
import ImageCodecs
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("A picture that a drawing carries")
struct SVGPictureTests {
  private func drawing(_ content: String) -> Data {
    Data(
      "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' width='40' height='20'>\(content)</svg>"
        .utf8
    )
  }

  private func image(_ file: Data, _ type: String, _ attribute: String = "href") -> String {
    "<image width='40' height='40' \(attribute)='data:image/\(type);base64,\(file.base64EncodedString())'/>"
  }

  private func refusal(_ content: String, _ decoder: ImageDecoder = ImageDecoder()) -> CacheError? {
    #expect(throws: CacheError.self) { try decoder.decode(drawing(content)) }
  }

  private let red = PNGFile(width: 1, height: 1, colorType: 2, rows: [[255, 0, 0]]).data

  @Test("is drawn, where it is PNG, JPEG or GIF")
  func drawn() throws {
    let jpeg = try ImageEncoder(.jpeg, quality: 95).encode(ImageDecoder().decode(red))
    let gif = GIFFile(frames: [(1, 10)]).data
    for content in [
      image(red, "png"), image(red, "PNG;charset=utf-8", "xlink:href"), image(jpeg, "jpeg"), image(gif, "gif"),
      // As some programs write it: in lines, or with what a URL has no place for in escapes.
      image(red, "png").replacing("iVBOR", with: "&#10;iVB\n OR"),
      image(red, "png").replacing("=", with: "%3D").replacing("href%3D", with: "href=").replacing("width%3D", with: "width=")
        .replacing("height%3D", with: "height="),
    ] {
      let pixel = try ImageDecoder().decode(drawing(content)).pixels[20, 10]
      #expect(isClose(pixel, RGBA(255, 0, 0)), "\(content): \(pixel)")
    }
  }

  @Test("is held against the limits by its own header")
  func bombs() throws {
    let bomb = PNGFile(width: 30_000, height: 30_000, colorType: 2, rows: [[1, 2, 3]]).data
    let error = refusal(image(bomb, "png"))
    #expect(error?.code == .imageLimitExceeded)
    #expect(
      error?.reason
        == "SVG: in a picture that it carries: PNG: the picture has 30000 × 30000 = 900000000 pixels, the limit is 100000000")
    #expect(
      refusal("<filter><feImage xlink:href='data:image/png;base64,\(bomb.base64EncodedString())'/></filter>")?.code
        == .imageLimitExceeded)
    let frames = GIFFile(frames: Array(repeating: (1, 10), count: 3000)).data
    #expect(refusal(image(frames, "gif"))?.code == .imageLimitExceeded)
    // A frame that is larger than its picture: the codec within makes it all the same.
    var large = Array(GIFFile(frames: [(1, 10)]).data)
    let descriptor = try #require(large.lastIndex(of: 0x2C))
    large.replaceSubrange(descriptor + 5..<descriptor + 9, with: [0xFF, 0xFF, 0xFF, 0xFF])
    #expect(refusal(image(Data(large), "gif"))?.code == .imageLimitExceeded)
  }

  @Test("counts together with the others")
  func sum() {
    // Given five of two frames of a hundred pixels each
    let five = String(repeating: image(GIFFile(width: 10, height: 10, frames: [(1, 10), (2, 10)]).data, "gif"), count: 5)
    #expect(throws: Never.self) { try ImageDecoder { $0.limits.pixels = 1000 }.decode(drawing(five)) }
    #expect(
      refusal(five, ImageDecoder { $0.limits.pixels = 999 })?.reason
        == "SVG: it carries 5 pictures or more, of 1000 pixels, the limits are 2000 and 999")
    #expect(refusal(five, ImageDecoder { $0.limits.frames = 4 })?.code == .imageLimitExceeded)
  }

  @Test(
    "that no engine is sure to draw is an error",
    arguments: [
      ("<image href='data:image/svg+xml;base64,PHN2Zy8+'/>", "it carries data:image/svg+xml"),
      ("<image href='data:image/svg+xml,%3Csvg/%3E'/>", "it carries data:image/svg+xml"),
      ("<image href='data:;base64,iVBORw0KGgo='/>", "it carries data:"), ("<image href='data:,iVBOR'/>", "it carries data:"),
      ("<image href='data:image/webp;base64,UklGRg=='/>", "it carries data:image/webp"),
      ("<image href='data:image/png;base64,R0lGODlh'/>", "the PNG that it carries is none"),
      ("<image href='data:image/png;base64,iVBORw0KGgo=#a'/>", "the PNG that it carries is none"),
      ("<image href='data:image/png;base64,iVBORw0KGgo='/>", "in a picture that it carries: PNG: "),
      ("<image href='data:image/png;base64'/>", "it carries data:image/png"),
      // What is read as markup, or as a style, is no picture.
      ("<use href='data:image/svg+xml;base64,PHN2Zy8+#a'/>", "it points out of itself"),
      ("<rect fill='url(data:image/svg+xml;base64,PHN2Zy8+#a)'/>", "it points out of itself"),
      ("<rect style='fill:u\\72 l( \"data:image/svg+xml,a#b\")'/>", "it points out of itself"),
      ("<rect style='fill:url(\"data:image/svg+xml,a\\\"\\23 b\")'/>", "it points out of itself"),
      ("<rect style='a:b(/*url(\"*/);fill:url(data:a#b)/*\")*/'/>", "it points out of itself"),
      ("<style>@imp<!-- -->ort \"data:text/css,a\";</style>", "it points out of itself"),
      ("<style>@\\69mport \"data:text/css,a\";</style>", "it points out of itself"),
      (
        "<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='data:text/plain,a' parse='text'/>",
        "it points out of itself"
      ),
      ("<style><g/></style>", "there is an element in a style sheet"),
    ])
  func refusals(content: String, reason: String) {
    let error = refusal(content)
    #expect(error?.code == .decodingFailed, "\(content)")
    #expect(error?.reason.hasPrefix("SVG: \(reason)") == true, "\(content): \(error?.reason ?? "")")
  }
}
#endif
