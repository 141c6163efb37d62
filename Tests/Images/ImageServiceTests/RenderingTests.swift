#if Service
import CacheTesting
import Foundation
import HTTPTypes
import ImageCodecs
import Testing

@testable import ImageService

@Suite("Making results")
struct RenderingTests {
  private static let damaged = Data("not an image".utf8)

  private func decoder(_ text: String, known: String?, fast: Bool = false) throws -> RenderingDecoder {
    let operations = try ImageOperations(text, maximumSide: 4_096)
    return RenderingDecoder(
      RenderJob(operations: operations, format: .png, limits: ImageService.Limits(), fastShrinkOnLoad: fast),
      name: operations.description, known: known)
  }

  private func metadata(etag: String?) -> StoredMetadata {
    var fields = HTTPFields()
    fields[.eTag] = etag
    let request = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/a")
    let now = Timestamp(seconds: 0)
    return StoredMetadata(
      request: request, response: HTTPResponse(status: .ok, headerFields: fields), requestTime: now, responseTime: now,
      revision: .random(), freshness: Freshness(generatedAt: now, freshUntil: now))
  }

  @Test("a result whose tag is known is confirmed without decoding the source")
  func confirmation() throws {
    let metadata = metadata(etag: "\"1\"")
    #expect(throws: CacheError.self) { try decoder("gray", known: nil).decode(Self.damaged, metadata) }
    #expect(try decoder("gray", known: "*").decode(Self.damaged, metadata).image == nil)
    let tag = try decoder("gray", known: "*").decode(Self.damaged, metadata).tag
    #expect(try decoder("gray", known: "\"x\", \(tag)").decode(Self.damaged, metadata).image == nil)
    #expect(throws: CacheError.self) { try decoder("gray", known: "\"x\"").decode(Self.damaged, metadata) }
  }

  @Test("the tag depends on the operations, and on the source's strong tag or else on its bytes")
  func tags() throws {
    func tag(_ operations: String, _ bytes: String, _ etag: String?) throws -> String {
      try decoder(operations, known: "*").decode(Data(bytes.utf8), metadata(etag: etag)).tag
    }
    #expect(try tag("gray", "a", "\"1\"") == tag("gray", "b", "\"1\""))
    #expect(try tag("gray", "a", "\"1\"") != tag("gray", "a", "\"2\""))
    #expect(try tag("gray", "a", "\"1\"") != tag("circle", "a", "\"1\""))
    for etag in [nil, "W/\"1\""] {
      #expect(try tag("gray", "a", etag) == tag("gray", "a", etag))
      #expect(try tag("gray", "a", etag) != tag("gray", "b", etag))
    }
  }

  @Test("a result that was shrunk fast has another tag")
  func fastTag() throws {
    func tag(fast: Bool) throws -> String {
      try decoder("gray", known: "*", fast: fast).decode(Self.damaged, metadata(etag: nil)).tag
    }
    #expect(try tag(fast: true) != tag(fast: false))
  }

  @Test(
    "the sizes of steps are those of the images that they make",
    arguments: [
      "width=100", "width=500:enlarge", "fit=90x200", "exact=30x90", "pixels=900", "fill=100x50:left", "fill=500x500",
      "crop=50x60",
      "crop=50x60:attention", "rect=390:10:100:20", "rotate=90", "circle", "gray,blur=1,radius=3,border=1:000000",
      "flip=vertical",
    ])
  func sizes(_ text: String) throws {
    let operations = try ImageOperations(text, maximumSide: 4_096)
    let data = try DrawnImage.png(400, 300)
    let (decoder, rest) = operations.processor.decoding(scale: 1)
    let made = try rest.process(decoder.decode(data))
    #expect(operations.sizes(from: PixelSize(400, 300)).last == made.size)
    #expect(operations.enlarges || (made.size.width <= 400 && made.size.height <= 400))
  }

  @Test("an operation that needs more memory than decoding reserves it")
  func memory() throws {
    let data = try DrawnImage.png(100, 100)
    let small = try decoder("width=10", known: nil).workingMemory(for: data, metadata(etag: nil))
    let large = try decoder("gray,width=2000:enlarge", known: nil).workingMemory(for: data, metadata(etag: nil))
    #expect(small < 1 << 20)
    #expect(large >= 2_000 * 2_000 * 4 * 2)
  }
}
#endif
