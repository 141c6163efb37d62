import Testing

@testable import ImageCodecs

@Suite("Image sizing")
struct ImageSizingTests {
  @Test(
    "a size fits or fills its bounds and grows only on request",
    arguments: [
      (ImageSizing.fit(400, 400), PixelSize(4000, 3000), PixelSize(400, 300)),
      (.fit(400, 400), PixelSize(3000, 4000), PixelSize(300, 400)),
      (.fit(400, 400), PixelSize(100, 50), PixelSize(100, 50)),
      (.fit(400, 400).enlarging, PixelSize(100, 50), PixelSize(400, 200)),
      (.fit(3, 3), PixelSize(10_000, 1), PixelSize(3, 1)),
      (.width(400), PixelSize(4000, 3000), PixelSize(400, 300)),
      (.height(300), PixelSize(4000, 3000), PixelSize(400, 300)),
      (.width(10), PixelSize(20, 65_535), PixelSize(10, 32_768)),
      (.fill(400, 400), PixelSize(4000, 3000), PixelSize(533, 400)),
      (.fill(400, 400), PixelSize(3000, 4000), PixelSize(400, 533)),
      (.fill(400, 400), PixelSize(300, 4000), PixelSize(300, 4000)),
      (.fill(400, 400).enlarging, PixelSize(40, 20), PixelSize(800, 400)),
      (.exact(7, 900), PixelSize(4000, 3000), PixelSize(7, 900)),
      (.maxPixels(1_000_000), PixelSize(4000, 3000), PixelSize(1154, 866)),
      (.maxPixels(1_000_000), PixelSize(10, 10), PixelSize(10, 10)),
      (.maxPixels(1), PixelSize(4000, 3000), PixelSize(1, 1)),
      (.fit(0, -5), PixelSize(10, 10), PixelSize(1, 1)),
    ])
  func sizes(sizing: ImageSizing, from: PixelSize, to: PixelSize) {
    #expect(sizing.size(of: from) == to)
  }

  @Test(
    "a crop around a center stays within the image",
    arguments: [
      (PixelSize(40, 20), 0.5, 0.5, PixelRect(x: 30, y: 15, size: PixelSize(40, 20))),
      (PixelSize(40, 20), 0.0, 0.0, PixelRect(x: 0, y: 0, size: PixelSize(40, 20))),
      (PixelSize(40, 20), 1.0, 1.0, PixelRect(x: 60, y: 30, size: PixelSize(40, 20))),
      (PixelSize(40, 20), 0.3, 0.9, PixelRect(x: 10, y: 30, size: PixelSize(40, 20))),
      (PixelSize(400, 20), 0.9, 0.5, PixelRect(x: 0, y: 15, size: PixelSize(100, 20))),
      (PixelSize(40, 20), .nan, .infinity, PixelRect(x: 0, y: 30, size: PixelSize(40, 20))),
      (PixelSize(40, 20), -.infinity, -1, PixelRect(x: 0, y: 0, size: PixelSize(40, 20))),
    ])
  func crops(size: PixelSize, x: Double, y: Double, rect: PixelRect) {
    #expect(PixelSize(100, 50).crop(to: size, around: (x, y)) == rect)
  }

  @Test("a size stays within its bounds for any image")
  func bounds() {
    for width in stride(from: 1, through: 5000, by: 37) {
      for height in stride(from: 1, through: 5000, by: 41) {
        let size = PixelSize(width, height)
        let fitting = ImageSizing.fit(333, 211).size(of: size)
        #expect(fitting.width <= 333 && fitting.height <= 211 && !fitting.isEmpty)
        let filling = ImageSizing.fill(333, 211).enlarging.size(of: size)
        #expect(filling.width >= 333 && filling.height >= 211)
        #expect(ImageSizing.maxPixels(10_000).size(of: size).area <= 10_000)
      }
    }
  }

  @Test("an empty size does not change")
  func empty() {
    #expect(ImageSizing.fit(10, 10).size(of: PixelSize(0, 5)) == PixelSize(0, 5))
    #expect(ImageSizing.maxPixels(10).size(of: PixelSize(-1, 5)) == PixelSize(-1, 5))
  }

  @Test("descriptions differ for every rule and parameter, because they are part of keys")
  func descriptions() {
    let rules: [ImageSizing] = [
      .fit(1, 2), .fit(2, 1), .fit(1, 2).enlarging, .fill(1, 2), .fill(1, 2).enlarging, .exact(1, 2), .maxPixels(12), .width(1),
      .height(1),
    ]
    #expect(Set(rules.map { "\($0)" }).count == rules.count)
    #expect("\(ImageSizing.fit(400, 300))" == "fit(400x300)")
    #expect("\(ImageSizing.width(400))" == "fit(400x)")
  }

  @Test("points are rounded up to pixels, except for a rounding error")
  func points() {
    #expect(PixelSize(points: 100, 50.25, scale: 2) == PixelSize(200, 101))
    #expect(PixelSize(points: 33.1, 0.1, scale: 3) == PixelSize(100, 1))
    #expect(PixelSize(points: 1.1, 1, scale: 10) == PixelSize(11, 10))
    #expect(ImageSizing.fit(points: 100, 100, scale: 3) == .fit(300, 300))
    #expect(PixelSize(points: .infinity, .nan, scale: 1) == PixelSize(.max, 0))
  }

  @Test("a crop follows the anchor and stays within the image")
  func crops() {
    let size = PixelSize(533, 400)
    #expect(size.crop(to: PixelSize(400, 400)) == PixelRect(x: 66, y: 0, size: PixelSize(400, 400)))
    #expect(size.crop(to: PixelSize(400, 400), anchor: .left).x == 0)
    #expect(size.crop(to: PixelSize(400, 400), anchor: .bottomRight).x == 133)
    #expect(size.crop(to: PixelSize(1000, 100), anchor: .bottom) == PixelRect(x: 0, y: 300, size: PixelSize(533, 100)))
    #expect(ImageAnchor(x: .nan, y: 7) == ImageAnchor(x: 0.5, y: 1))
    #expect(size.clipping(PixelRect(x: -10, y: 390, size: PixelSize(20, 20))) == PixelRect(x: 0, y: 390, size: PixelSize(10, 10)))
    #expect(size.clipping(PixelRect(x: 600, y: 5, size: PixelSize(.max, .max))).size.isEmpty)
    #expect(size.clipping(PixelRect(x: .max, y: .min, size: PixelSize(5, 5))).size.isEmpty)
  }

  @Test(
    "a codec that preserves the aspect ratio decodes no side smaller than the target",
    arguments: [
      // The same aspect ratio, also rounded: the longer side of the target.
      (PixelSize(4000, 3000), PixelSize(400, 300), 400), (PixelSize(4000, 2667), PixelSize(400, 267), 400),
      (PixelSize(3000, 4000), PixelSize(300, 400), 400), (PixelSize(4000, 3000), PixelSize(4000, 3000), 4000),
      // Another one: the side that shrinks less decides.
      (PixelSize(4000, 1000), PixelSize(400, 400), 1600), (PixelSize(1000, 4000), PixelSize(400, 400), 1600),
      // No side is enlarged.
      (PixelSize(64, 48), PixelSize(2000, 8), 64), (PixelSize(64, 48), PixelSize(640, 480), 64),
      (PixelSize(0, 0), PixelSize(10, 20), 20),
    ])
  func decodedSide(original: PixelSize, target: PixelSize, side: Int) {
    #expect(original.decodedSide(for: target) == side)
  }

  @Test("an area cannot overflow")
  func area() {
    #expect(PixelSize(4000, 3000).area == 12_000_000)
    #expect(PixelSize(.max, 2).area == .max)
  }
}
