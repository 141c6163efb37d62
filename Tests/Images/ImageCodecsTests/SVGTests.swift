#if VIPS && os(Linux)
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

  private func withTemporaryFolder(_ body: (URL) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("etagere-svg-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder)
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
    "a drawing appears without the files and hosts that it refers to, as in a browser's img",
    arguments: [
      "<image href='file:///etc/passwd'/>", "<image xlink:href=\"http://127.0.0.1/a.png?a=1&amp;b=2\"/>",
      "<use href='other.svg#part'/>", "<image\nhref\n=\n' //host/a.png'/>", "<path fill='url(http://host/a.svg#g)' d='M0,0H9'/>",
      "<path style=\"fill: URL( 'http://host/g' )\" d='M0,0H9'/>", "<style>@import url(http://host/a.css);</style>",
      "<style><![CDATA[path{fill:url(file:///a)}]]></style>",
      "<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='/etc/passwd' parse='text'><xi:fallback/></xi:include>",
      "<image href='&#104;ttp://host/a.png'/>",
      "<filter id='f'><feImage href='https://host/a.png'/></filter><path filter='url(#f)' d='M0,0H9'/>",
    ])
  func references(content: String) throws {
    let image = try ImageDecoder().decode(drawing("\(content)<rect width='20' height='20' fill='red'/>"))
    #expect(image.pixels[10, 10] == RGBA(255, 0, 0))
    #expect(image.pixels[30, 15].alpha == 0)
  }

  @Test("a drawing appears without an external style sheet")
  func styleSheet() throws {
    let image = try ImageDecoder().decode(
      drawing("<rect width='20' height='20' fill='red'/>", before: "<?xml-stylesheet href='http://host/a.css'?>"))
    #expect(image.pixels[10, 10] == RGBA(255, 0, 0))
  }

  @Test("an existing image and an existing style sheet are not loaded")
  func existing() throws {
    try withTemporaryFolder { folder in
      let (image, sheet) = (folder.appendingPathComponent("a.svg"), folder.appendingPathComponent("a.css"))
      try drawing("<rect width='40' height='20' fill='blue'/>").write(to: image)
      try Data("rect { fill: blue }".utf8).write(to: sheet)
      for url in [image.absoluteString, image.path] {
        let drawn = try ImageDecoder().decode(drawing("<image href='\(url)' width='40' height='20'/><use href='\(url)'/>"))
        #expect(drawn.pixels[20, 10].alpha == 0)
      }
      let imported = "<style>@import '\(sheet.absoluteString)';</style><rect width='20' height='20' fill='red'/>"
      let before = "<?xml-stylesheet href='\(sheet.absoluteString)'?>"
      #expect(try ImageDecoder().decode(drawing(imported, before: before)).pixels[10, 10] == RGBA(255, 0, 0))
    }
  }

  @Test("the content of an external entity is not loaded")
  func entities() throws {
    try withTemporaryFolder { folder in
      let file = folder.appendingPathComponent("secret")
      try Data("<rect width='40' height='20' fill='red'/>".utf8).write(to: file)
      let before = "<!DOCTYPE svg [<!ENTITY secret SYSTEM '\(file.absoluteString)'>]>"
      // The XML parser refuses a reference to an entity that was not loaded, or draws nothing in its place.
      do throws(CacheError) {
        #expect(try ImageDecoder().decode(drawing("&secret;", before: before)).pixels[20, 10].alpha == 0)
      } catch {
        // Its reason ends with the library's last message, which can be that of another test's image.
        #expect(error.code == .decodingFailed && error.reason.hasPrefix("SVG: "))
      }
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
