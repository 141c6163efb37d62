#if Service
import CacheTesting
import Foundation
import HTTPTypes
import ImageService
import Testing

@Suite("Negotiation with clients")
struct NegotiationTests {
  private let fixture: ServiceFixture

  init() throws {
    fixture = try ServiceFixture { $0.formats = [.webp] }
    try fixture.serve(try DrawnImage.png(400, 300))
    try fixture.serve(try DrawnImage.png(40, 30, alpha: 128), at: "https://photos.example.com/clear.png")
  }

  @Test(
    "the format is the best one that Accept names",
    arguments: [
      (nil, "image/jpeg"), ("*/*", "image/jpeg"), ("image/*", "image/jpeg"), ("image/webp", Served.typeOfWebP),
      ("text/html, image/webp;q=0.8, */*", Served.typeOfWebP), ("image/webp;q=0", "image/jpeg"),
      ("IMAGE/WEBP", Served.typeOfWebP),
      ("image/webp;q=x", "image/jpeg"), (";;,,=", "image/jpeg"), ("image/ webp, im age/webp", "image/jpeg"),
    ])
  func format(_ accept: String?, _ type: String) async throws {
    var fields = HTTPFields()
    fields[.accept] = accept
    let served = try await fixture.get("width=40", fields)
    #expect(served.fields[.contentType] == type)
    #expect(served.fields[.vary] == "Accept")
    #expect(try served.header.format.mediaType == type)
  }

  @Test("a transparent image becomes PNG for a client that does not accept WebP")
  func transparency() async throws {
    let served = try await fixture.get("width=40", of: "https://photos.example.com/clear.png")
    #expect(served.fields[.contentType] == "image/png")
    #expect(try served.header.hasAlpha)
  }

  @Test("a fixed format does not depend on the client")
  func fixed() async throws {
    let served = try await fixture.get("width=40,format=jpeg", [.accept: "image/webp"])
    #expect(served.fields[.contentType] == "image/jpeg")
    #expect(served.fields[.vary] == nil)
  }

  @Test(
    "a stated width is rounded up",
    arguments: [("1", 80), ("80", 80), ("81", 160), ("399.5", 400), ("1000000000", 400), ("-5", 240), ("nan", 240), ("", 240)])
  func width(_ stated: String, _ width: Int) async throws {
    let name = try #require(HTTPField.Name("Sec-CH-Width"))
    let served = try await fixture.get("width=auto:240,format=png", [name: stated])
    #expect(try served.header.size.width == width)
    #expect(served.fields[.vary] == "Sec-CH-Width, Width")
  }

  @Test("a stated pixel ratio multiplies the sizes", arguments: [("2", 80), ("1.7", 80), ("0.5", 40), ("99", 160), ("x", 40)])
  func pixelRatio(_ stated: String, _ width: Int) async throws {
    let name = try #require(HTTPField.Name("Sec-CH-DPR"))
    let served = try await fixture.get("width=40,dpr=auto,format=png", [name: stated])
    #expect(try served.header.size.width == width)
    #expect(try served.fields[#require(HTTPField.Name("Accept-CH"))] == "Sec-CH-DPR")
  }

  @Test("clients with other fields share a result if the decision is the same")
  func sharing() async throws {
    _ = try await fixture.get("width=40", [.accept: "image/webp,*/*"])
    let served = try await fixture.get("width=40", [.accept: "image/avif,image/webp;q=0.9", .userAgent: "x"])
    #expect(served.response.servedFrom == .memory)
  }
}
#endif
