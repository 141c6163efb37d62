#if VIPS && os(Linux)
import CacheCore
import Testing

@testable import ImageCodecs

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("The work of an SVG")
struct SVGWorkTests {
  private static func drawing(_ content: String, _ attributes: String = "width='100' height='100'") -> Data {
    Data("<svg xmlns='http://www.w3.org/2000/svg' \(attributes)>\(content)</svg>".utf8)
  }

  private static func filter(_ content: String) -> String {
    "<filter id='f'>\(content)</filter><rect filter='url(#f)' width='100' height='100'/>"
  }

  private static func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }

  /// Decodes while the clock stands still, so that the estimates of the work decide and not the speed of the machine.
  @discardableResult
  private static func decode(_ file: Data, _ decoder: ImageDecoder = ImageDecoder()) throws -> DecodedImage {
    let now = SuspendingClock.now
    return try DecodingDeadline.$now.withValue({ now }) { try decoder.decode(file) }
  }

  private static let chain = (1..<700).reversed().map { "<use id='a\($0)' href='#a\($0 - 1)'/>" }.joined()
  private static let tree = (1..<9).map { "<g id='a\($0)'>\(repeated("<use href='#a\($0 - 1)'/>", 10))</g>" }.joined()

  @Test(
    "a drawing that ends the process, or takes too long or too much memory, is refused with a reason",
    arguments: [
      ("<text font-size='1e9'>a</text>", "largest text"), ("<text style='font-size:3000000px'>a</text>", "largest text"),
      ("<style>text{font:bold 1e7px serif}</style><text>a</text>", "largest text"),
      ("<style>.a{font-s\\69ze:/**/1e7px}</style><text class='a'>a</text>", "largest text"),
      ("<g font-size='1000em'><g font-size='1000%'><text font-size='100em'>a</text></g></g>", "largest text"),
      ("<g transform='scale(1e9)'><text>a</text></g>", "largest text"),
      ("<g transform='matrix(0 1e5 -1e5 0 0 0)'><text>a</text></g>", "largest text"),
      ("<svg width='100' height='100' viewBox='0 0 1e-4 1e-4'><text>a</text></svg>", "largest text"),
      (filter("<feConvolveMatrix order='100' kernelMatrix='\(repeated("1 ", 10_000))'/>"), "matrix of a filter"),
      (filter("<feConvolveMatrix order='3' kernelMatrix='\(repeated("1,", 1_000))'/>"), "matrix of a filter"),
      (filter("<feConvolveMatrix order='21' kernelMatrix='1'/>"), "matrix of a filter"),
      (filter("<feDiffuseLighting kernelUnitLength='0.005'/>"), "kernelUnitLength"),
      (filter("<feTurbulence baseFrequency='0.01' numOctaves='2000000000'/>"), "octaves"),
      (repeated("<g/>", 100_001), "elements"), (repeated("<g>", 300) + repeated("</g>", 300), "nested"),
      ("\(chain)<g id='a0'><text>a</text></g>", "nested"), ("<g id='a0'><rect/></g>\(tree)", "drawing would take"),
      ("<g transform='matrix(1e78 0 0 1e78 0 0)'><text>a</text></g>", "largest text"),
      ("<g id='a 0'><rect/></g>\(tree.replacing("#a0", with: "#a 0"))", "drawing would take"),
      ("<g id='a'><g id='b'><use href='#a'/></g></g>", "cycle"),
      ("<style>\(repeated(".a,", 80_000)).a{fill:\(repeated(" url(#x)", 500_000))}</style><g class='a'/>", "references"),
      ("<style>\(repeated("b,", 20_000))b{fill:red}</style>\(repeated("<g/>", 99_000))", "drawing would take"),
      ("<style>\(repeated(".a{fill:url(#x)}", 5_000))</style>\(repeated("<g class='a a a'/>", 4_000))", "too often"),
      ("<path stroke-dasharray='.3 .3' d='M0 0\(repeated("H100000H0", 40))'/>", "drawing would take"),
      ("<text>\(repeated("a", 100_000))</text>", "drawing would take"),
      ("<text><![CDATA[\(repeated("a", 100_000))]]></text>", "drawing would take"),
      ("<style>\(repeated("a~b{fill:red}", 20))</style>\(repeated("<a/>", 50_000))", "drawing would take"),
      (
        "<linearGradient id='g'>\(repeated("<stop/>", 50_000))</linearGradient>\(repeated("<rect fill='url(#g)'/>", 200))",
        "drawing would take"
      ),
    ])
  func refusals(content: String, reason: String) {
    let error = #expect(throws: CacheError.self) { try Self.decode(Self.drawing(content)) }
    #expect(error?.code == .imageLimitExceeded || error?.code == .decodingFailed)
    #expect(error?.reason.contains(reason) == true, "\(content.prefix(80)): \(error?.reason ?? "")")
  }

  @Test("text from entities counts, and default attributes cannot hide work")
  func declarations() {
    for (declaration, content, reason) in [
      ("<!ENTITY a '\(Self.repeated("a", 20_000))'>", "<text>\(Self.repeated("&a;", 100))</text>", "drawing would take"),
      ("<!ENTITY a '\(Self.repeated("a", 20_000))'>", "<text>\(Self.repeated("&a;", 20_000))</text>", "4 MiB"),
      ("<!ENTITY a '1e9'>", "<text font-size='&a;'>a</text>", "largest text"),
      ("<!ATTLIST text font-size CDATA '1e9'>", "<text>a</text>", "attribute font-size"),
      ("<!ATTLIST feTurbulence numOctaves CDATA '2000000000'>", Self.filter("<feTurbulence/>"), "attribute numOctaves"),
      ("<!ATTLIST rect fill CDATA 'url(#a)'>", "<rect/>", "attribute fill"),
    ] {
      let file = Data("<!DOCTYPE svg [\(declaration)]>".utf8) + Self.drawing(content)
      let error = #expect(throws: CacheError.self) { try Self.decode(file) }
      #expect(error?.reason.contains(reason) == true, "\(declaration.prefix(80)): \(error?.reason ?? "")")
    }
  }

  @Test("filters and layers are allowed up to a number of pixels in the size of the result")
  func passes() throws {
    let blurs = Self.filter(Self.repeated("<feGaussianBlur stdDeviation='5'/>", 100))
    let layers = Self.repeated("<g opacity='0.5'>", 200) + "<rect/>" + Self.repeated("</g>", 200)
    let masks = "<mask id='m'><rect/></mask><style>.a{mask:url(#m)}</style>" + Self.repeated("<g class='a'/>", 400)
    for content in [blurs, layers, masks] {
      #expect(throws: Never.self) { try Self.decode(Self.drawing(content)) }
      let error = #expect(throws: CacheError.self) {
        try Self.decode(Self.drawing(content), ImageDecoder(size: .fit(4_000, 4_000).enlarging))
      }
      #expect(error?.reason.contains("SVG: ") == true && error?.code == .imageLimitExceeded, "\(error?.reason ?? "")")
    }
  }

  @Test(
    "a size beyond the limits is refused, and a large view box in a small drawing is drawn",
    arguments: ["viewBox='0 0 1e9 1e9'", "width='1e12' height='1'", "width='9' viewBox='0 0 1 1e7'", "width='9000in' height='1'"])
  func sizes(attributes: String) throws {
    let error = #expect(throws: CacheError.self) { try Self.decode(Self.drawing("<rect/>", attributes)) }
    #expect(error?.code == .imageLimitExceeded, "\(error?.reason ?? "")")
    let large = Self.drawing("<rect width='5e8' height='1e9' fill='blue'/>", "width='10' height='10' viewBox='0 0 1e9 1e9'")
    let pixels = try Self.decode(large).pixels
    #expect(pixels[2, 5] == RGBA(0, 0, 255) && pixels[8, 5].alpha == 0)
  }

  @Test("ordinary drawings are not refused")
  func ordinary() {
    let merge = "<feMerge><feMergeNode/></feMerge>"
    let shadow = "<filter id='s'><feGaussianBlur stdDeviation='3'/><feOffset dx='2' dy='2'/>\(merge)</filter>"
    let sheet = "<style>.a{opacity:.5;font-size:1.2em}.b{fill:url(#g);clip-path:url(#c)}</style>"
    for content in [
      "\(sheet)\(Self.repeated("<path class='a b' d='M0 0h9v9z'/>", 300))",
      "\(shadow)\(Self.repeated("<rect filter='url(#s)' width='9' height='9'/>", 20))",
      Self.repeated("<g transform='rotate(30) translate(1 2)'>", 30)
        + "<text font-size='2em'>\(Self.repeated("text ", 100))</text>"
        + Self.repeated("</g>", 30),
      Self.repeated("<text x='1' y='2'>a label</text>", 2_000), Self.repeated("<path d='M1 2L3 4'/>", 30_000),
      Self.filter("<feConvolveMatrix order='3' kernelMatrix='0 1 0 1 1 1 0 1 0'/><feTurbulence numOctaves='4'/>"),
    ] {
      #expect(throws: Never.self) { try Self.decode(Self.drawing(content)) }
    }
  }

  @Test("ordinary drawings of 1000 to 1440 pixels are not refused")
  func large() {
    let shadows = (0..<30).map {
      "<filter id='f\($0)'><feFlood/><feColorMatrix/><feOffset/><feGaussianBlur stdDeviation='2'/><feComposite/><feBlend/></filter>"
        + "<g filter='url(#f\($0))'><rect x='\($0 * 40)' width='30' height='80'/></g>"
    }
    let size = "width='1440' height='1024'"
    for content in [
      Self.repeated("<path opacity='.5' d='M0 0h50v50h-20z'/>", 420), shadows.joined(),
      "<style>.grid line{opacity:.7}</style><g class='grid'>\(Self.repeated("<line x1='9' x2='9' y2='600'/>", 45))</g>"
        + Self.repeated("<circle cx='9' cy='9' r='3'/>", 800),
      "<g transform='scale(6000)'><path d='M0 0L.1 .1L.05 .12z'/></g>",
      "<style>h1 em{font-size:2em}</style>\(Self.repeated("<g>", 12))<text>a</text>\(Self.repeated("</g>", 12))",
      "<style>.w text{font-size:150%}</style><g class='w'>\(Self.repeated("<g>", 20))<text>a</text>\(Self.repeated("</g>", 21))",
      "<g transform='scale(60)'><text style='font:900 12px serif'>a</text></g>",
      Self.repeated("<path opacity='100%' d='M0 0h9'/>", 500),
      "<style>path:hover{fill:red}path:focus{fill:red}.a:hover{fill:red}</style>"
        + Self.repeated("<path d='M0 0h1'/>", 50_000),
    ] {
      #expect(throws: Never.self, "\(content.prefix(80))") { try Self.decode(Self.drawing(content, size)) }
    }
  }

  @Test("a format that the limits exclude is refused before a codec reads the file")
  func formats() throws {
    let decoder = ImageDecoder { $0.limits.formats = .fitForUntrustedFiles }
    let error = #expect(throws: CacheError.self) { try decoder.decode(Self.drawing("<rect/>")) }
    #expect(error?.code == .unsupported && error?.reason.hasPrefix("SVG: ") == true)
    #expect(decoder.id != ImageDecoder().id)
    let image = try ImageEncoder.png.encode(TestImages.quarters())
    #expect(throws: Never.self) { try decoder.decode(image) }
  }
}
#endif
