#if Service
import CacheTesting
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdImages
import HummingbirdTesting
import ImageService
import Testing

@Suite("Routes of a Hummingbird server")
struct RoutesTests {
  private let fixture: ServiceFixture

  init() throws {
    fixture = try ServiceFixture { $0.limits.clientRate = .init(perSecond: 1, burst: 2) }
    try fixture.serve(try DrawnImage.png(40, 30))
  }

  private func application(client: String? = nil) -> some ApplicationProtocol {
    let router = Router()
    router.addRoutes(ImageRoutes(fixture.service) { _, _ in client }.endpoints)
    router.get("other") { _, _ in "other" }
    return Application(router: router)
  }

  @Test("the routes serve images beside other routes")
  func routes() async throws {
    let path = fixture.key.path(for: ServiceFixture.image, operations: "width=20,format=png")
    try await application().test(.live) { client in
      let image = try await client.execute(uri: path, method: .get)
      #expect(image.status == .ok)
      #expect(try ImageHeader(of: Data(image.body.readableBytesView)).size == PixelSize(20, 15))
      let tag = try #require(image.headers[.eTag])
      let known = try await client.execute(uri: path, method: .get, headers: [.ifNoneMatch: tag])
      #expect(known.status == .notModified)
      let head = try await client.execute(uri: path, method: .head)
      #expect(head.headers[.contentLength] == "\(image.body.readableBytes)")
      #expect(head.body.readableBytes == 0)
      #expect(try await client.execute(uri: "/other", method: .get).status == .ok)
      #expect(try await client.execute(uri: "/img/x/y/z", method: .get).status == .forbidden)
    }
  }

  @Test("the identity of the client is that of the closure")
  func clients() async throws {
    let path = fixture.key.path(for: ServiceFixture.image, operations: "width=20")
    try await application(client: "a").test(.router) { client in
      for status in [HTTPResponse.Status.ok, .ok, .tooManyRequests] {
        let response = try await client.execute(uri: path, method: .get)
        #expect(response.status == status)
      }
    }
  }
}
#endif
