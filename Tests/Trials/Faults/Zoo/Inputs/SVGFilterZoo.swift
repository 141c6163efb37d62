#if Service
import Foundation

/// SVG filters with large numbers, many primitives and large regions.
enum SVGFilterZoo {
  static func inputs() -> [ZooInput] { primitives + chains + regions }

  private static func filtered(_ primitives: String, region: String = "", size: String = "width='100' height='100'") -> Data {
    SVGZoo.drawing(
      "<filter id='f' \(region)>\(primitives)</filter><rect filter='url(#f)' width='100%' height='100%' fill='red'/>", size)
  }

  private static func matrix(_ order: Int, _ more: String = "") -> String {
    "<feConvolveMatrix order='\(order)' \(more) kernelMatrix='\("1 ".times(min(order * order, 250_000)))'/>"
  }

  private static var primitives: [ZooInput] {
    var files: [(String, Data)] = []
    for order in [0, 1, 3, 19, 20, 21, 30, 100, 500] { files.append(("convolution of \(order)", filtered(matrix(order)))) }
    for target in [
      "targetX='100'", "targetX='-1'", "divisor='0'", "bias='1e30'", "edgeMode='wrap'", "edgeMode='none'",
      "kernelUnitLength='.001'", "preserveAlpha='true'",
    ] {
      files.append(("convolution with \(target)", filtered(matrix(3, target))))
    }
    files += [
      ("convolution without numbers", filtered("<feConvolveMatrix order='65536' kernelMatrix='1'/>")),
      ("convolution of 20 by 1", filtered("<feConvolveMatrix order='20 1' kernelMatrix='\("1 ".times(20))'/>")),
      ("convolution of 400 by 1", filtered("<feConvolveMatrix order='400 1' kernelMatrix='\("1 ".times(400))'/>")),
      ("convolution of fractions", filtered("<feConvolveMatrix order='3.5' kernelMatrix='1 1 1'/>")),
    ]
    for value in ["1e30", "-1", "1e-30", "NaN", "5000", "100"] {
      files += [
        ("morphology \(value)", filtered("<feMorphology radius='\(value)'/>")),
        ("dilation \(value)", filtered("<feMorphology operator='dilate' radius='\(value)'/>")),
        ("blur \(value)", filtered("<feGaussianBlur stdDeviation='\(value)'/>")),
        ("offset \(value)", filtered("<feOffset dx='\(value)' dy='\(value)'/>")),
        ("turbulence \(value)", filtered("<feTurbulence baseFrequency='\(value)' seed='\(value)' numOctaves='9'/>")),
        ("displacement \(value)", filtered("<feDisplacementMap in='SourceGraphic' in2='SourceGraphic' scale='\(value)'/>")),
        (
          "point light \(value)",
          filtered(
            "<feDiffuseLighting surfaceScale='\(value)'><fePointLight x='\(value)' y='0' z='\(value)'/></feDiffuseLighting>")
        ),
        (
          "spot light \(value)",
          filtered(
            "<feSpecularLighting specularExponent='\(value)'><feSpotLight x='1' y='\(value)' z='9' limitingConeAngle='\(value)'/></feSpecularLighting>"
          )
        ),
        ("arithmetic \(value)", filtered("<feComposite operator='arithmetic' in2='SourceGraphic' k1='\(value)' k2='\(value)'/>")),
        ("shadow \(value)", filtered("<feDropShadow dx='\(value)' stdDeviation='\(value)'/>")),
      ]
    }
    for octaves in [0, 9, 999, 1_001, 2_000_000_000] {
      files.append(("turbulence of \(octaves) octaves", filtered("<feTurbulence baseFrequency='.01' numOctaves='\(octaves)'/>")))
    }
    files += [
      ("stitched turbulence", filtered("<feTurbulence baseFrequency='.01' stitchTiles='stitch' numOctaves='9'/>")),
      (
        "table of 200000 numbers",
        filtered("<feComponentTransfer><feFuncR type='table' tableValues='\("0 1 ".times(100_000))'/></feComponentTransfer>")
      ),
      (
        "gamma 1e30",
        filtered("<feComponentTransfer><feFuncR type='gamma' exponent='-1e30' amplitude='1e30'/></feComponentTransfer>")
      ), ("color matrix of 100000 numbers", filtered("<feColorMatrix values='\("1 ".times(100_000))'/>")),
      ("color matrix of NaN", filtered("<feColorMatrix values='\("NaN ".times(20))'/>")),
      ("empty tile", filtered("<feTile x='0' y='0' width='0' height='0'/>")),
      ("tiny tile", filtered("<feFlood width='.001' height='.001' flood-color='red'/><feTile/>")),
      ("tile without input", filtered("<feTile/>")),
      (
        "lights in each other",
        filtered("<feDiffuseLighting>\("<feDiffuseLighting>".times(100))\("</feDiffuseLighting>".times(100))</feDiffuseLighting>")
      ), ("light without a source", filtered("<feDiffuseLighting/>")),
      ("image of the filtered element", filtered("<feImage href='#f'/>")), ("unknown primitive", filtered("<feUnknown/>")),
    ]
    return ZooInput.family("SVG filters", .slow, files)
  }

  private static var chains: [ZooInput] {
    var files: [(String, Data)] = []
    for (name, primitive) in [
      ("blurs", "<feGaussianBlur stdDeviation='50'/>"), ("offsets", "<feOffset dx='1'/>"),
      ("dilations", "<feMorphology operator='dilate' radius='9'/>"),
      ("turbulences", "<feTurbulence baseFrequency='.1' numOctaves='5'/>"), ("floods", "<feFlood/>"),
      ("lights", "<feDiffuseLighting><feDistantLight/></feDiffuseLighting>"), ("convolutions", matrix(15)),
      ("displacements", "<feDisplacementMap in2='SourceGraphic' scale='9'/>"),
    ] {
      for count in [30, 100, 1_000] { files.append(("\(count) \(name)", filtered(primitive.times(count)))) }
      files.append(("10 \(name) on 4 million pixels", filtered(primitive.times(10), size: "width='2000' height='2000'")))
    }
    files += [
      ("merge of 10000", filtered("<feMerge>\("<feMergeNode/>".times(10_000))</feMerge>")),
      ("5000 named results", filtered((0..<5_000).map { "<feOffset in='r\($0 - 1)' result='r\($0)'/>" }.joined())),
      (
        "5000 filters",
        SVGZoo.drawing(
          (0..<5_000).map { "<filter id='f\($0)'><feOffset/></filter><rect filter='url(#f\($0))' width='9' height='9'/>" }
            .joined())
      ),
      (
        "list of 1000",
        SVGZoo.drawing("<filter id='f'><feOffset/></filter><rect width='9' height='9' filter='\("url(#f) ".times(1_000))'/>")
      ),
      ("500 functions", SVGZoo.drawing("<rect width='99' height='99' style='filter:\("blur(9px) ".times(500))'/>")),
      ("blur function of 1e9", SVGZoo.drawing("<rect width='99' height='99' style='filter:blur(1e9px)'/>")),
      ("shadow function of 1e9", SVGZoo.drawing("<rect width='99' height='99' style='filter:drop-shadow(1e9px 0 1e9px red)'/>")),
    ]
    return ZooInput.family("SVG filter chains", .slow, files)
  }

  private static var regions: [ZooInput] {
    let blur = "<feGaussianBlur stdDeviation='9'/>"
    var files: [(String, Data)] = []
    for value in ["1e30", "1e9", "NaN", "0", "-5", "100000%"] {
      files.append(("of \(value)", filtered(blur, region: "x='-\(value)' y='-\(value)' width='\(value)' height='\(value)'")))
      files.append(
        ("in user space of \(value)", filtered(blur, region: "filterUnits='userSpaceOnUse' width='\(value)' height='\(value)'")))
      files.append(("of a primitive of \(value)", filtered("<feFlood x='-\(value)' y='0' width='\(value)' height='\(value)'/>")))
    }
    files += [
      ("with a resolution", filtered(blur, region: "filterRes='100000'")),
      ("in units of the box", filtered("<feOffset dx='1e9'/>", region: "primitiveUnits='objectBoundingBox'")),
      ("of an empty shape", SVGZoo.drawing("<filter id='f'>\(blur)</filter><g filter='url(#f)'/>")),
      (
        "scaled by 1e9",
        SVGZoo.drawing(
          "<filter id='f'>\(blur)</filter><g transform='scale(1e9)'><rect width='9' height='9' filter='url(#f)'/></g>")
      ),
      (
        "in a view box of 1e-9",
        SVGZoo.drawing(
          "<filter id='f'>\(blur)</filter><rect width='9' height='9' filter='url(#f)'/>",
          "width='99' height='99' viewBox='0 0 1e-9 1e-9'")
      ),
    ]
    return ZooInput.family("SVG filter regions", .slow, files)
  }
}
#endif
