#if VIPS && os(Linux)
import CacheCore
import ImageCodecs
import ImageFiles
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Images embedded in an SVG")
struct SVGEmbeddedImageTests {
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

  @Test("embedded PNG, JPEG and GIF images are drawn")
  func drawn() throws {
    let jpeg = try ImageEncoder(.jpeg, quality: 95).encode(ImageDecoder().decode(red))
    let gif = GIFFile(frames: [(1, 10)]).data
    for content in [
      image(red, "png"), image(red, "PNG;charset=utf-8", "xlink:href"), image(jpeg, "jpeg"), image(jpeg, "jpg"),
      image(jpeg, "JPG"), image(jpeg, "jpg") + image(jpeg, "jpg"),
      image(gif, "gif"),
      // As some programs write it: in lines, or with percent-encoded characters.
      image(red, "png").replacing("iVBOR", with: "&#10;iVB\n OR"),
      image(red, "png").replacing("=", with: "%3D").replacing("href%3D", with: "href=").replacing("width%3D", with: "width=")
        .replacing("height%3D", with: "height="),
    ] {
      let pixel = try ImageDecoder().decode(drawing(content)).pixels[20, 10]
      #expect(isClose(pixel, RGBA(255, 0, 0)), "\(content): \(pixel)")
    }
  }

  @Test("the header of an embedded image is checked against the limits")
  func bombs() throws {
    let bomb = PNGFile(width: 30_000, height: 30_000, colorType: 2, rows: [[1, 2, 3]]).data
    let error = refusal(image(bomb, "png"))
    #expect(error?.code == .imageLimitExceeded)
    #expect(
      error?.reason
        == "SVG: in an embedded image: PNG: the image has 30000 × 30000 = 900000000 pixels, the limit is 100000000")
    #expect(
      refusal("<filter><feImage xlink:href='data:image/png;base64,\(bomb.base64EncodedString())'/></filter>")?.code
        == .imageLimitExceeded)
    let frames = GIFFile(frames: Array(repeating: (1, 10), count: 3000)).data
    #expect(refusal(image(frames, "gif"))?.code == .imageLimitExceeded)
    // A frame larger than its image: the codec decodes it anyway.
    var large = Array(GIFFile(frames: [(1, 10)]).data)
    let descriptor = try #require(large.lastIndex(of: 0x2C))
    large.replaceSubrange(descriptor + 5..<descriptor + 9, with: [0xFF, 0xFF, 0xFF, 0xFF])
    #expect(refusal(image(Data(large), "gif"))?.code == .imageLimitExceeded)
  }

  @Test("all embedded images count together")
  func sum() {
    // Given five of two frames of a hundred pixels each
    let five = String(repeating: image(GIFFile(width: 10, height: 10, frames: [(1, 10), (2, 10)]).data, "gif"), count: 5)
    #expect(throws: Never.self) { try ImageDecoder { $0.limits.pixels = 1000 }.decode(drawing(five)) }
    #expect(
      refusal(five, ImageDecoder { $0.limits.pixels = 999 })?.reason
        == "SVG: it embeds at least 5 images of 1000 pixels, the limits are 2000 and 999")
    #expect(refusal(five, ImageDecoder { $0.limits.frames = 4 })?.code == .imageLimitExceeded)
  }

  @Test(
    "an embedded image that not every engine draws is an error",
    arguments: [
      ("<image href='data:image/svg+xml;base64,PHN2Zy8+'/>", "unsupported embedded image data:image/svg+xml"),
      ("<image href='data:image/svg+xml,%3Csvg/%3E'/>", "unsupported embedded image data:image/svg+xml"),
      ("<image href='data:;base64,iVBORw0KGgo='/>", "unsupported embedded image data:"),
      ("<image href='data:,iVBOR'/>", "unsupported embedded image data:"),
      ("<image href='data:image/webp;base64,UklGRg=='/>", "unsupported embedded image data:image/webp"),
      ("<image href='data:image/png;base64,R0lGODlh'/>", "an embedded image is not a PNG"),
      ("<image href='data:image/png;base64,iVBORw0KGgo=#a'/>", "an embedded image is not a PNG"),
      ("<image href='data:image/png;base64,iVBORw0KGgo='/>", "in an embedded image: PNG: "),
      ("<image href='data:image/png;base64'/>", "unsupported embedded image data:image/png"),
      // Content that is read as markup or as a style is not an image.
      ("<use href='data:image/svg+xml;base64,PHN2Zy8+#a'/>", "unsupported embedded document "),
      ("<rect fill='url(data:image/svg+xml;base64,PHN2Zy8+#a)'/>", "unsupported embedded document "),
      ("<rect style='fill:u\\72 l( \"data:image/svg+xml,a#b\")'/>", "unsupported embedded document "),
      ("<rect style='fill:url(\"data:image/svg+xml,a\\\"\\23 b\")'/>", "unsupported embedded document "),
      ("<rect style='a:b(/*url(\"*/);fill:url(data:a#b)/*\")*/'/>", "unsupported embedded document "),
      ("<style>@imp<!-- -->ort \"data:text/css,a\";</style>", "unsupported embedded document "),
      ("<style>@\\69mport \"data:text/css,a\";</style>", "unsupported embedded document "),
      ("<style>@import /*;*/ \"data:text/css,a\";</style>", "unsupported embedded document "),
      ("<style>@import /*;*/ url(data:text/css,a);</style>", "unsupported embedded document "),
      ("<style>@import 'a.css';@import url( d\nata:text/css,a);</style>", "unsupported embedded document "),
      (
        "<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='data:text/plain,a' parse='text'/>",
        "unsupported embedded document "
      ),
      ("<style><g/></style>", "a style sheet contains an element"),
    ])
  func refusals(content: String, reason: String) {
    let error = refusal(content)
    #expect(error?.code == .decodingFailed, "\(content)")
    #expect(error?.reason.hasPrefix("SVG: \(reason)") == true, "\(content): \(error?.reason ?? "")")
  }
}
#endif
