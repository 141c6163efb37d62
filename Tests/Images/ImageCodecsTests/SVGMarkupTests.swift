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

@Suite("SVG markup")
struct SVGMarkupTests {
  private func refusal(_ content: String, before: String = "") -> CacheError? {
    let file = Data(
      "\(before)<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' width='4' height='4'>\(content)</svg>"
        .utf8)
    do throws(CacheError) {
      _ = try ImageDecoder().decode(file)
      return nil
    } catch { return error }
  }

  @Test("comments, sections and instructions do not hide references")
  func hidden() {
    let image = "<use href='data:image/svg+xml,a#b'/>"
    for before in [
      "<?a > ' ?>", "<?a \" ?>", "<!-- ' --->", "<!-- <![CDATA[ -->", "<g><![CDATA[ <!-- ' ]]></g>", "<g a='>'/>",
      "<g a='<!--'/>",
    ] {
      let error = refusal(before + image + "<!-- -->")
      #expect(error?.reason.contains("data:image/svg+xml,a#b") == true, "\(before): \(error?.reason ?? "")")
    }
    #expect(refusal("<?a \(image) ?><!-- \(image) --><text><![CDATA[\(image)]]></text>") == nil)
  }

  @Test("entities and default attributes do not hide references")
  func declared() {
    for (content, declarations) in [
      ("<use href='&a;'/>", "<!ENTITY a 'data:image/svg+xml,a#b'>"), ("<image href='&#100;&a;:,'/>", "<!ENTITY a 'ata'>"),
      ("<rect style='fill:u&a;'/>", "<!ENTITY a 'rl(data:image/svg+xml,a#b)'>"),
      ("<rect style='&b;'/>", "<!ENTITY a 'url(dat'><!ENTITY b 'fill:&a;a:image/svg+xml,a#b)'>"),
      ("<use href='d&#9;a&#10;ta:image/svg+xml,a#b'/>", ""), ("<use href='&#1;DATA:image/svg+xml,a#b'/>", ""),
      ("<g>&a;</g>", "<!ENTITY a '&#60;image href=\"data:image/png;base64,\"/>'>"),
      ("<g/>", "<!ENTITY % a '<!ENTITY b \"c\">'> %a;"), ("<g/>", "%a;"), ("<g>&a;</g>", "<!ENTITY a 'b'><!ENTITY a 'c'>"),
      ("<image/>", "<!ATTLIST image xlink:href CDATA 'data:image/png;base64,'>"),
      ("<rect/>", "<!ATTLIST rect fill CDATA 'url(data:image/svg+xml,a#b)'>"),
    ] {
      let error = refusal(content, before: "<!DOCTYPE svg [\(declarations)]>")
      let reason = error?.reason ?? "accepted"
      let starts = ["SVG: it ", "SVG: its document type ", "SVG: the entity a ", "SVG: unsupported embedded "]
      #expect(starts.contains { reason.hasPrefix($0) }, "\(declarations): \(reason)")
    }
    let harmless =
      "<!DOCTYPE svg [<!ATTLIST g id ID #IMPLIED><!ENTITY ns 'http://www.w3.org/2000/svg'>"
      + "<!ENTITY st 'fill:url(#a);'><!-- ]> -->]>"
    #expect(refusal("<rect xmlns='&ns;' style='&st;'/>", before: harmless) == nil)
  }

  @Test("an encoding that is not ASCII-compatible is refused")
  func encodings() {
    for name in ["UTF-7", "utf-16", "EBCDIC-US", "ISO-2022-JP"] {
      let error = refusal("<g/>", before: "<?xml version='1.0' encoding='\(name)'?>")
      #expect(error?.code == .unsupported, "\(name)")
    }
    for name in ["UTF-8", "iso-8859-1", "US-ASCII"] {
      #expect(refusal("<g/>", before: "<?xml version=\"1.0\" encoding=\"\(name)\" standalone='no'?>") == nil, "\(name)")
    }
  }

  @Test(
    "malicious markup is read in linear time",
    arguments: [
      "url(#", "url(", "<!--", "<![CDATA[", "<?", "<style>", "&", "&a;", "\\7", "@", "@import", "/*", "(", "<a b='", "\" ",
      "<!DOCTYPE [", "%3", "data:",
    ])
  func linear(piece: String) {
    func time(_ length: Int) -> Double {
      let text = String(repeating: piece, count: length / piece.utf8.count)
      // The minimum of three: other work on the machine can only add time.
      return (0..<3).reduce(Double.infinity) { least, _ in
        let time = threadTime {
          for content in [
            text, "<rect style='\(text)'/>", "<style>\(text)</style>", "<image href='data:image/png;base64,\(text)'/>",
          ] {
            _ = refusal(content)
          }
        }
        return min(least, time)
      }
    }
    // Four times the length: quadratic work would take sixteen times as long.
    let (short, long) = (time(8_000), time(32_000))
    #expect(long < max(short, 0.05) * 10, "\(short) s, \(long) s")
  }

  @Test("the check respects the time limit")
  func time() {
    let file = Data("<svg xmlns='http://www.w3.org/2000/svg' width='4' height='4'><g/></svg>".utf8)
    let error = #expect(throws: CacheError.self) { try ImageHeader(of: file, limits: ImageLimits { $0.time = .zero }) }
    #expect(error?.reason == "SVG: decoding took longer than the limit of 0.0 seconds")
  }
}
#endif
