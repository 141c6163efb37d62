#if Service
import Foundation
import ImageFiles

/// SVG drawings: elements, nesting, references, entities, styles, texts and numbers.
enum SVGZoo {
  static func inputs() -> [ZooInput] {
    nesting + elements + references + entities + styles + texts + numbers + paint + documents + embedded
  }

  /// Returns a drawing of 100 × 100 pixels, or one with other attributes.
  static func drawing(_ content: String, _ attributes: String = "width='100' height='100'") -> Data {
    Data("<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' \(attributes)>\(content)</svg>".utf8)
  }

  private static func drawings(_ contents: [(String, String)]) -> [(String, Data)] { contents.map { ($0.0, drawing($0.1)) } }

  private static let rect = "<rect width='9' height='9'/>"

  private static var nesting: [ZooInput] {
    var contents: [(String, String)] = []
    for name in [
      "g", "svg", "switch", "a", "symbol", "defs", "mask", "clipPath", "pattern", "text", "marker", "filter", "unknown",
    ] {
      for depth in [200, 3_000, 50_000] {
        contents.append(("\(depth) \(name)", "<\(name)>".times(depth) + rect + "</\(name)>".times(depth)))
      }
    }
    contents.append(("20000 tspan", "<text>" + "<tspan>".times(20_000) + "a" + "</tspan>".times(20_000) + "</text>"))
    for (name, definition, attribute) in [
      ("filter", "<filter id='f'><feOffset/></filter>", "filter='url(#f)'"),
      ("mask", "<mask id='f'>\(rect)</mask>", "mask='url(#f)'"),
      ("clip", "<clipPath id='f'>\(rect)</clipPath>", "clip-path='url(#f)'"), ("opacity", "", "opacity='0.5'"),
      ("blend", "", "style='mix-blend-mode:multiply'"), ("transform", "", "transform='scale(2)'"),
    ] {
      for depth in [90, 240, 2_000] {
        contents.append(
          ("\(depth) groups with \(name)", definition + "<g \(attribute)>".times(depth) + rect + "</g>".times(depth)))
      }
    }
    return ZooInput.family("SVG nesting", .slow, drawings(contents))
  }

  private static var elements: [ZooInput] {
    var contents: [(String, String)] = []
    for count in [1_000, 30_000, 99_000] {
      contents += [
        ("\(count) rect", "<rect/>".times(count)), ("\(count) g", "<g/>".times(count)),
        ("\(count) path", "<path d='M0 0h9'/>".times(count)),
        ("\(count) title", "<title/>".times(count)),
      ]
    }
    contents += [
      ("200000 g", "<g/>".times(200_000)), ("50000 text", "<text>a</text>".times(50_000)),
      ("40000 circles with strokes", "<circle r='9' stroke='red'/>".times(40_000)),
    ]
    contents += [
      ("100000 attributes", "<rect \((0..<100_000).map { "a\($0)='' " }.joined())/>"),
      ("attribute of 1 MB", "<rect id='\("a".times(1_000_000))'/>"),
    ]
    // Shapes that cover the whole drawing take more time than the estimate of the service.
    for count in [300, 3_000, 20_000] {
      contents.append(("\(count) covering", "<rect width='100%' height='100%' fill-opacity='.1'/>".times(count)))
      contents.append(
        (
          "\(count) covering with a gradient",
          "<radialGradient id='g'><stop/><stop offset='1' stop-color='red'/></radialGradient>"
            + "<circle r='90%' fill='url(#g)' fill-opacity='.1'/>".times(count)
        ))
    }
    let large = [300, 3_000, 20_000].flatMap { count in
      [
        (
          "\(count) covering 4 million pixels",
          drawing("<rect width='100%' height='100%' fill-opacity='.1'/>".times(count), "width='2000' height='2000'")
        ),
        (
          "\(count) circles on 4 million pixels",
          drawing(
            "<circle cx='50%' cy='50%' r='70%' stroke='red' stroke-width='40%' fill-opacity='.1'/>".times(count),
            "width='2000' height='2000'")
        ),
      ]
    }
    return ZooInput.family("SVG elements", .slow, drawings(contents) + large)
  }

  private static var references: [ZooInput] {
    func chain(_ count: Int) -> String {
      "<g id='a0'>\(rect)</g>" + (1..<count).map { "<use id='a\($0)' href='#a\($0 - 1)'/>" }.joined()
    }
    func tree(_ depth: Int, _ width: Int) -> String {
      "<g id='a0'>\(rect)</g>" + (1...depth).map { "<g id='a\($0)'>\("<use href='#a\($0 - 1)'/>".times(width))</g>" }.joined()
    }
    func nestedPaint(_ kind: String, _ depth: Int) -> String {
      (1...depth).map {
        "<\(kind) id='p\($0)' width='3' height='3'><rect width='9' height='9' fill='url(#p\($0 - 1))' mask='url(#p\($0 - 1))'/></\(kind)>"
      }.joined()
        + "<rect width='100' height='100' fill='url(#p\(depth))' mask='url(#p\(depth))'/>"
    }
    var contents = [100, 500, 5_000].map { ("chain of \($0)", chain($0)) }
    contents += [(5, 10), (7, 10), (9, 10), (20, 2), (30, 2), (16, 3), (3, 100)].map {
      ("tree of \($0.0) by \($0.1)", tree($0.0, $0.1))
    }
    for kind in ["pattern", "mask"] { contents += [5, 10, 40].map { ("\($0) \(kind) in each other", nestedPaint(kind, $0)) } }
    contents += [
      ("use in a cycle", "<g id='a'><use href='#b'/></g><g id='b'><use href='#a'/></g>"),
      ("use of itself", "<use id='a' href='#a'/>"),
      (
        "pattern of itself",
        "<pattern id='a' width='9' height='9'><rect fill='url(#a)' width='9' height='9'/></pattern><rect fill='url(#a)' width='99' height='99'/>"
      ),
      (
        "pattern in a cycle of href",
        "<pattern id='a' href='#b'/><pattern id='b' href='#a'/><rect fill='url(#a)' width='99' height='99'/>"
      ),
      (
        "gradient in a cycle",
        "<linearGradient id='a' href='#b'/><linearGradient id='b' href='#a'/><rect fill='url(#a)' width='99' height='99'/>"
      ),
      (
        "mask of itself",
        "<mask id='a' mask='url(#a)'><rect width='9' height='9' mask='url(#a)'/></mask><rect mask='url(#a)' width='99' height='99'/>"
      ),
      (
        "clip of itself",
        "<clipPath id='a' clip-path='url(#a)'>\(rect)</clipPath><rect clip-path='url(#a)' width='99' height='99'/>"
      ),
      (
        "marker of itself",
        "<marker id='a'><path marker-start='url(#a)' d='M0 0h1'/></marker><path marker-start='url(#a)' d='M0 0h1'/>"
      ),
      ("filter of itself", "<filter id='a'><feImage href='#b'/></filter><rect id='b' filter='url(#a)' width='9' height='9'/>"),
      ("tref of itself", "<text id='a'><tref href='#a'/></text>"),
      ("text on its own path", "<text id='a'><textPath href='#a'>a</textPath></text>"),
      ("20000 markers", "<marker id='m'>\(rect)</marker><path marker-mid='url(#m)' d='M0 0\("L1 1".times(20_000))'/>"),
      (
        "markers in markers",
        (1...8).map { "<marker id='m\($0)'><path d='M0 0\("L1 1".times(20))' marker-mid='url(#m\($0 - 1))'/></marker>" }.joined()
          + "<path d='M0 0\("L1 1".times(20))' marker-mid='url(#m8)'/>"
      ),
      ("file", "<image href='file:///etc/passwd' width='9' height='9'/><use href='file:///etc/passwd#a'/>"),
      ("host", "<image href='http://127.0.0.1:1/' width='9' height='9'/>"),
      ("endless file", "<image href='/dev/zero' width='9' height='9'/>"),
    ]
    return ZooInput.family("SVG references", .slow, drawings(contents))
  }

  /// Returns a drawing whose entities expand to 10 to the power of `depth`.
  static func laughs(_ depth: Int, _ use: String = "<text>&e9;</text>") -> String {
    let entities = (1...depth).map { "<!ENTITY e\($0) '\("&e\($0 - 1);".times(10))'>" }.joined()
    return
      "<!DOCTYPE svg [<!ENTITY e0 'lol'>\(entities)]><svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'>\(use)</svg>"
  }

  private static var entities: [ZooInput] {
    func document(_ declarations: String, _ content: String) -> Data {
      Data("<!DOCTYPE svg [\(declarations)]>".utf8) + drawing(content)
    }
    let text = "<!ENTITY a '\("a".times(20_000))'>"
    let files: [(String, Data)] = [
      ("a billion laughs", Data(laughs(9).utf8)), ("laughs in an attribute", Data(laughs(9, "<rect id='&e9;'/>").utf8)),
      ("laughs in a style", Data(laughs(9, "<style>&e9;</style>").utf8)),
      ("20000 of 20000 bytes", document(text, "<text>\("&a;".times(20_000))</text>")),
      ("100 of 20000 bytes", document(text, "<text>\("&a;".times(100))</text>")),
      ("20000 in a title", document(text, "<title>\("&a;".times(20_000))</title>")),
      ("20000 in attributes", document(text, "<rect id='&a;'/>".times(20_000))),
      ("of itself", document("<!ENTITY a '&a;'>", "<text>&a;</text>")),
      ("in a cycle", document("<!ENTITY a '&b;'><!ENTITY b '&a;'>", "<text>&a;</text>")),
      ("external", document("<!ENTITY a SYSTEM 'file:///etc/passwd'>", "<text>&a;</text>")),
      ("endless external", document("<!ENTITY a SYSTEM '/dev/zero'>", "<text>&a;</text>")),
      ("parameter", document("<!ENTITY % a '<!ENTITY b \"c\">'>%a;", "<text>&b;</text>")),
      ("external document type", Data("<!DOCTYPE svg SYSTEM 'http://127.0.0.1:1/a.dtd'>".utf8) + drawing(rect)),
      ("with markup", document("<!ENTITY a '<g><g><rect/></g></g>'>", "&a;".times(1_000))),
      ("50000 declared", document((0..<50_000).map { "<!ENTITY a\($0) 'b'>" }.joined(), rect)),
      ("default attributes", document("<!ATTLIST text font-size CDATA '1e9'>", "<text>a</text>")),
      ("as a font size", document("<!ENTITY a '1e9'>", "<text font-size='&a;'>a</text>")),
      ("character of a billion", drawing("<text>&#999999999999;</text>")), ("character 0", drawing("<text>&#0;</text>")),
      ("undeclared", drawing("<text>&a;</text>")),
      ("50000 characters", drawing("<text>\("&#x1F600;".times(50_000))</text>")),
    ]
    return ZooInput.family("SVG entities", .slow, files)
  }

  private static var styles: [ZooInput] {
    let contents: [(String, String)] = [
      ("selector of 20000 parts", "<style>\("a ".times(20_000)){fill:red}</style>\(rect)"),
      ("20000 rules", "<style>\((0..<20_000).map { ".a\($0){fill:red}" }.joined())</style>\(rect.times(500))"),
      ("40000 selectors", "<style>\("b,".times(40_000))b{fill:red}</style>\("<g/>".times(20_000))"),
      (
        "descendants",
        "<style>\("g g g g g g g g rect{fill:red}".times(500))</style>" + "<g>".times(90) + rect.times(500) + "</g>".times(90)
      ),
      ("siblings", "<style>\("rect~rect~rect{fill:red}".times(20))</style>\("<rect/>".times(10_000))"),
      ("not in each other", "<style>\(":not(".times(5_000))a\(")".times(5_000)){fill:red}</style>\(rect)"),
      ("is in each other", "<style>\(":is(".times(20_000))a\(")".times(20_000)){fill:red}</style>\(rect)"),
      ("media in each other", "<style>\("@media all{".times(20_000))\("}".times(20_000))</style>\(rect)"),
      ("functions in each other", "<rect style='fill:\("calc(".times(50_000))1\(")".times(50_000))' width='9' height='9'/>"),
      ("brackets in each other", "<style>a\("[".times(100_000))\("]".times(100_000)){fill:red}</style>\(rect)"),
      (
        "nth child",
        "<style>\((0..<2_000).map { "rect:nth-child(\($0)n+1){fill:red}" }.joined())</style>\("<rect/>".times(2_000))"
      ),
      ("import", "<style>@import url(http://127.0.0.1:1/);@import 'file:///etc/passwd';</style>\(rect)"),
      ("10000 imports", "<style>\("@import 'a';".times(10_000))</style>\(rect)"),
      ("without an end", "<style>rect{fill:red"), ("comment without an end", "<style>/*\("a".times(500_000))</style>\(rect)"),
      ("escapes", "<style>text{font-s\\69ze:1e9px}</style><text>a</text>"),
      ("100000 blocks", "<style>\("{".times(100_000))</style>\(rect)"),
      ("declaration of 1 MB", "<rect style='fill:\("red ".times(250_000))'/>"),
      ("variables", "<style>\((0..<5_000).map { "--a\($0):var(--a\($0 + 1));" }.joined())</style>\(rect)"),
      ("fonts", "<style>@font-face{font-family:a;src:url(data:font/woff;base64,AAAA)}</style><text font-family='a'>a</text>"),
      ("important", "<style>\("*{font-size:2em!important}".times(1_000))</style><text>a</text>"),
    ]
    return ZooInput.family("SVG styles", .slow, drawings(contents))
  }

  private static var texts: [ZooInput] {
    var contents: [(String, String)] = []
    for size in ["49999", "1e5", "1e6", "1e9", "1e38", "1e400", "-1e9", "NaN", "0", "1e-30", "5000em", "1e9%"] {
      contents.append(("size \(size)", "<text y='50' font-size='\(size)'>aaaa</text>"))
    }
    for attribute in [
      "letter-spacing='1e9'", "word-spacing='1e9'", "textLength='1e30'", "dx='1e30'", "x='1e9' y='1e9'",
      "rotate='\("45 ".times(10_000))'", "baseline-shift='1e9'",
      "style='font:1e9px/1 serif'", "font-weight='1e9'", "font-stretch='1e9%'", "stroke='red' stroke-width='1e9'",
      "writing-mode='tb'", "direction='rtl' unicode-bidi='bidi-override'",
      "font-family='\("a,".times(20_000))'", "lang='\("a-".times(50_000))'",
    ] { contents.append(("with \(attribute.prefix(30))", "<text y='50' \(attribute)>aaaa bbbb</text>")) }
    contents += [
      ("of 10000 letters", "<text>\("a".times(10_000))</text>"), ("of 400000 letters", "<text>\("a".times(400_000))</text>"),
      ("of 100000 letters in CDATA", "<text><![CDATA[\("a".times(100_000))]]></text>"),
      ("of 20000 combining marks", "<text>a\("\u{301}".times(20_000))</text>"),
      ("of 20000 bidirectional marks", "<text>\("\u{202E}a\u{202D}b".times(5_000))</text>"),
      (
        "of many scripts",
        "<text>\((0x400..<0x3000).compactMap { Unicode.Scalar($0).map { String(Character($0)) } }.joined().filter { $0.isLetter })</text>"
      ),
      ("of joined emoji", "<text>\("👩\u{200D}👩\u{200D}👧\u{200D}".times(3_000))</text>"),
      ("10000 tspan", "<text>\("<tspan dx='1'>a</tspan>".times(10_000))</text>"),
      ("scaled", "<g transform='scale(1e9)'><text>a</text></g>"),
      ("scaled in steps", "<g transform='scale(100)'>".times(5) + "<text>a</text>" + "</g>".times(5)),
      ("scaled in em", "<g font-size='9em'>".times(9) + "<text>a</text>" + "</g>".times(9)),
      (
        "with 300 shadows",
        "<filter id='f'><feDropShadow stdDeviation='9'/></filter>\("<text filter='url(#f)'>aaa</text>".times(300))"
      ),
    ]
    return ZooInput.family("SVG texts", .slow, drawings(contents))
  }

  private static var numbers: [ZooInput] {
    let values = [
      "0", "-1", "1e9", "1e38", "1e400", "-1e30", "NaN", "inf", "1e-30", "4294967296", "9000in", "1e9%", "", "a",
      "1".times(100_000),
    ]
    let sizes = values.map {
      ("side \($0.prefix(12))", drawing("<rect width='50%' height='50%'/>", "width='\($0)' height='100'"))
    }
    let boxes = [
      "0 0 0 0", "0 0 -1 -1", "0 0 1e-30 1e-30", "0 0 1e30 1e30", "1e30 1e30 1 1", "0 0 1 1e7", "NaN 0 1 1", "0 0", "0 0 1e400 1",
      "-1e38 -1e38 2e38 2e38",
    ].map {
      ("view box \($0)", drawing("<rect width='50%' height='50%'/><text>a</text>", "width='100' height='100' viewBox='\($0)'"))
    }
    let transforms = [
      "scale(1e30)", "scale(0)", "scale(1e-30)", "matrix(1e30 1e30 1e30 1e30 1e30 1e30)", "rotate(1e30)", "skewX(90)",
      "translate(1e38)", "scale(2)".times(2_000), "matrix(1 2",
    ].map {
      ("transform \($0.prefix(24))", drawing("<g transform='\($0)'>\(rect)<path d='M0 0L9 9' stroke='red'/></g>"))
    }
    let none = [
      ("no size", drawing(rect, "")), ("no size but a view box of 1e9", drawing(rect, "viewBox='0 0 1e9 1e9'")),
      ("one side of 3 million", drawing(rect, "width='3000000' height='1'")),
    ]
    return ZooInput.family("SVG numbers", .slow, sizes + boxes + transforms + none)
  }

  private static var paint: [ZooInput] {
    var contents: [(String, String)] = []
    for value in ["1e30", "1e-30", "NaN", "-9", "1e9"] {
      contents += [
        ("stroke \(value)", "<path stroke='red' stroke-width='\(value)' d='M0 0 L1e4 99'/>"),
        ("dashes \(value)", "<path stroke='red' stroke-dasharray='\(value)' d='M0 0 L1e9 99'/>"),
        ("dash offset \(value)", "<path stroke='red' stroke-dasharray='1' stroke-dashoffset='\(value)' d='M0 0 L99 99'/>"),
        (
          "pattern \(value)",
          "<pattern id='p' width='\(value)' height='\(value)' patternUnits='userSpaceOnUse'>\(rect)</pattern><rect fill='url(#p)' width='99' height='99'/>"
        ),
        (
          "marker \(value)",
          "<marker id='m' markerWidth='\(value)' markerHeight='\(value)'><rect width='\(value)' height='\(value)'/></marker><path marker-start='url(#m)' d='M0 0 L1 1'/>"
        ),
        ("circle \(value)", "<circle r='\(value)' stroke='red'/>"),
        ("arc \(value)", "<path d='M0 0 A\(value) \(value) 0 1 1 99 99'/>"),
        ("path \(value)", "<path stroke='red' d='M0 0 C\(value) 1 2 \(value) 9 9 S1 1 \(value) \(value) z'/>"),
      ]
    }
    contents += [
      ("path of 200000 lines", "<path stroke='red' d='M0 0\("L9 9".times(200_000))'/>"),
      ("path of 100000 curves", "<path stroke='red' d='M0 0\("c1 9 9 1 5 5".times(100_000))'/>"),
      ("path of 50000 arcs", "<path d='M0 0\("a1 2 3 1 0 4 5".times(50_000))'/>"),
      ("long lines with dashes", "<path stroke='red' stroke-dasharray='.3' d='M0 0\("H100000H0".times(40))'/>"),
      ("round joins", "<path stroke='red' stroke-linejoin='round' stroke-width='90' d='M0 0\("L99 99L0 9".times(30_000))'/>"),
      ("dashes of 100000 numbers", "<path stroke='red' stroke-dasharray='\("1 ".times(100_000))' d='M0 0L99 99'/>"),
      ("points of 100000 numbers", "<polygon points='\("1 9 ".times(50_000))' stroke='red'/>"),
      (
        "gradient of 50000 stops",
        "<linearGradient id='g'>\("<stop/>".times(50_000))</linearGradient>\("<rect fill='url(#g)' width='99' height='99'/>".times(20))"
      ),
      (
        "tiny tiles",
        "<pattern id='p' width='.01' height='.01' patternUnits='userSpaceOnUse'>\(rect)</pattern>\("<rect fill='url(#p)' width='99' height='99'/>".times(50))"
      ),
      (
        "clip of 50000 shapes",
        "<clipPath id='c'>\("<rect width='1' height='1'/>".times(50_000))</clipPath>\("<rect clip-path='url(#c)' width='99' height='99'/>".times(20))"
      ),
      (
        "crossing lines",
        "<path fill-rule='evenodd' d='M0 0\((0..<3_000).map { "L\($0 * 37 % 100) \($0 * 61 % 100)" }.joined())z'/>"
      ),
    ]
    return ZooInput.family("SVG paint", .slow, drawings(contents))
  }

  private static var documents: [ZooInput] {
    let text = String(decoding: drawing(rect), as: UTF8.self)
    let utf16 = Data([0xFF, 0xFE]) + Data(text.utf16.flatMap { ZooBytes.little(Int($0), 2) })
    let files: [(String, Data)] = [
      ("in UTF-16", utf16), ("that states UTF-7", Data("<?xml version='1.0' encoding='UTF-7'?>\(text)".utf8)),
      ("that states EBCDIC", Data("<?xml version='1.0' encoding='IBM037'?>\(text)".utf8)),
      ("with a comment of 1 MB", Data("<!--\("a".times(1_000_000))-->\(text)".utf8)),
      ("with 100000 comments", Data("\("<!---->".times(100_000))\(text)".utf8)),
      ("with 50000 instructions", Data("\("<?a b?>".times(50_000))\(text)".utf8)),
      ("with a style sheet", Data("<?xml-stylesheet href='data:text/css,rect{}'?>\(text)".utf8)),
      ("with a document type without an end", Data("<!DOCTYPE svg [".utf8)), ("with NUL", Data(text.utf8) + Data(count: 100)),
      (
        "with invalid UTF-8",
        Data("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><text>".utf8) + Data([0xC0, 0x80, 0xFF, 0xFE])
          + Data("</text></svg>".utf8)
      ), ("twice", Data((text + text).utf8)), ("without an end", Data(text.dropLast(6).utf8)),
      (
        "with scripts", drawing("<script>while(true){}</script><animate attributeName='x' dur='1e-9s' repeatCount='indefinite'/>")
      ),
      (
        "with HTML",
        drawing(
          "<foreignObject width='99' height='99'><body xmlns='http://www.w3.org/1999/xhtml'>\("<p>a</p>".times(1_000))</body></foreignObject>"
        )
      ),
      (
        "with inclusions",
        drawing("<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='file:///etc/passwd' parse='text'/>")
      ), ("with 20000 name spaces", drawing("<g \((0..<20_000).map { "xmlns:a\($0)='b' " }.joined())/>")),
      ("with wrong ends", drawing("<g><rect></g></rect>")), ("with a name of 1 MB", drawing("<\("a".times(1_000_000))/>")),
    ]
    return ZooInput.family("SVG documents", .slow, files)
  }

  private static var embedded: [ZooInput] {
    func image(_ type: String, _ file: Data) -> String {
      "<image width='9' height='9' href='data:image/\(type);base64,\(file.base64EncodedString())'/>"
    }
    let small = PNGFile(width: 4, height: 4, colorType: 0, rows: Array(repeating: [1, 2, 3, 4], count: 4)).data
    let large = PNGFile(width: 60_000, height: 60_000, colorType: 2, rows: [[1, 2, 3]]).data
    let contents: [(String, String)] = [
      ("PNG of 60000x60000", image("png", large)), ("PNG as JPEG", image("jpeg", small)),
      ("1000 PNG", image("png", small).times(1_000)), ("3000 PNG", image("png", small).times(3_000)),
      ("cut PNG", image("png", small.prefix(40))),
      ("GIF of 65535x65535", image("gif", Data("GIF89a".utf8) + Data([0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0x3B]))),
      ("SVG", image("svg+xml", drawing(rect))), ("WebP", image("webp", Data("RIFF0000WEBP".utf8))),
      ("nothing", image("png", Data())),
      ("text", "<image href='data:text/plain,a' width='9' height='9'/>"),
      ("used 3000 times", "<g id='a'>\(image("png", small))</g>\("<use href='#a'/>".times(3_000))"),
      ("of 1e9", "<image width='1e9' height='1e9' href='data:image/png;base64,\(small.base64EncodedString())'/>"),
      ("document in use", "<use href='data:image/svg+xml;base64,PHN2Zy8+#a'/>"),
      ("invalid base64", "<image href='data:image/png;base64,\("=".times(10_000))' width='9' height='9'/>"),
      (
        "feImage",
        "<filter id='f'><feImage href='data:image/png;base64,\(large.base64EncodedString())'/></filter><rect filter='url(#f)' width='9' height='9'/>"
      ),
    ]
    return ZooInput.family("SVG images", .slow, drawings(contents))
  }
}
#endif
