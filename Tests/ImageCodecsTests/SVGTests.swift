#if VIPS
import CacheCore
import CacheTesting
import ImageCodecs
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("SVG")
struct SVGTests {
  private func drawing(_ content: String, before: String = "") -> Data {
    Data(
      "\(before)<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' width='40' height='20'>\(content)</svg>"
        .utf8)
  }

  @Test("an SVG is drawn in the requested size, including larger ones")
  func sizes() throws {
    let file = drawing("<rect width='20' height='20' fill='red'/>")
    #expect(try ImageHeader(of: file).size == PixelSize(40, 20))
    let image = try ImageDecoder(size: .fit(400, 400).enlarging).decode(file)
    #expect(image.size == PixelSize(400, 200))
    #expect(image.pixels[198, 100] == RGBA(255, 0, 0))
    // A drawn edge is sharp, an enlarged one is not.
    #expect(image.pixels[202, 100].alpha == 0)
  }

  @Test(
    "a reference to a file or a host is an error that names the target",
    arguments: [
      ("<image href='file:///etc/passwd'/>", "file:///etc/passwd"),
      ("<image xlink:href=\"http://127.0.0.1/a.png\"/>", "http://127.0.0.1/a.png"),
      ("<use href='other.svg#part'/>", "other.svg#part"), ("<image\nhref\n=\n' //host/a.png'/>", "//host/a.png"),
      ("<rect fill='url(http://host/a.svg#g)'/>", "http://host/a.svg#g"),
      ("<rect style=\"fill: URL( 'http://host/g' )\"/>", "http://host/g"),
      ("<style>@import url(http://host/a.css);</style>", "@import"),
      ("<style><![CDATA[rect{fill:url(file:///a)}]]></style>", "file:///a"),
      ("<xi:include href='/etc/passwd'/>", "/etc/passwd"), ("<image href='&#104;ttp://host/a.png'/>", "http://host/a.png"),
      ("<feImage href='https://host/a.png'/>", "https://host/a.png"),
    ])
  func references(content: String, target: String) {
    let error = #expect(throws: CacheError.self) { try ImageDecoder().decode(drawing(content)) }
    #expect(error?.code == .decodingFailed)
    #expect(error?.reason.hasPrefix("SVG: it refers to an external resource, ") == true)
    #expect(error?.reason.contains(target) == true, "\(error?.reason ?? "")")
  }

  @Test("an external entity or style sheet is an error")
  func entities() {
    for before in [
      "<!DOCTYPE svg [<!ENTITY secret SYSTEM 'file:///etc/passwd'>]>", "<?xml-stylesheet href='http://host/a.css'?>",
    ] {
      let error = #expect(throws: CacheError.self) { try ImageDecoder().decode(drawing("<text>&secret;</text>", before: before)) }
      #expect(error?.reason.hasPrefix("SVG: it refers to an external resource") == true)
    }
  }

  @Test("internal references, data and links are allowed")
  func harmless() throws {
    let document = "<!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' 'http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd'>"
    let content = """
      <!-- <image href='http://host/a.png'/> --><defs><linearGradient id='g'><stop stop-color='blue'/></linearGradient></defs>
      <a href='https://example.com/'><rect width='40' height='20' fill='url(#g)'/></a>
      <style>@font-face { font-family: "a\\5FAE"; src: url("data:font/woff2;base64,d09GMgAB") } /* url(" */</style>
      <text>url(http://host/a) <![CDATA[@import url(http://host/a)]]></text>
      """
    #expect(try ImageDecoder().decode(drawing(content, before: document)).pixels[20, 10] == RGBA(0, 0, 255))
  }

  @Test("nested entities fail quickly")
  func laughs() {
    let entities = (1...12).map { "<!ENTITY e\($0) '\(String(repeating: "&e\($0 - 1);", count: 10))'>" }.joined()
    let before = "<!DOCTYPE svg [<!ENTITY e0 'ha'>\(entities)]>"
    let time = threadTime { _ = try? ImageDecoder().decode(drawing("<text>&e12;</text>", before: before)) }
    #expect(time < 20)
  }

  @Test("truncated markup never traps")
  func cut() {
    let file = drawing(
      "<style><![CDATA[@import 'a']]></style><image href='data:,a'/>", before: "<!DOCTYPE svg [<!ENTITY a 'b'>]>")
    for length in 0..<file.count { _ = try? ImageDecoder().decode(file.prefix(length)) }
  }

  @Test("an oversized SVG is refused by its header")
  func absurd() {
    let file = Data("<svg xmlns='http://www.w3.org/2000/svg' width='30000' height='30000'/>".utf8)
    let error = #expect(throws: CacheError.self) { try ImageDecoder().decode(file) }
    #expect(error?.code == .imageLimitExceeded)
  }
}
#endif
