import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("The location of a redirect")
struct RedirectLocationTests {
  let fixture: ManagerFixture

  init() throws { fixture = try ManagerFixture() }

  private func redirect(_ locations: String...) { redirect(locations.map { Array($0.utf8) }) }

  private func redirect(_ locations: [[UInt8]]) {
    let fields = HTTPFields(locations.map { HTTPField(name: .location, value: $0) })
    fixture.network.serve(fixture.url) { _ in .response(.found, fields: fields) }
  }

  @Test(
    "existing escapes of a location stay, and invalid bytes are encoded",
    arguments: [
      ("/t/a%20b c", "/t/a%20b%20c"), ("/é%20x?f[]=%5B", "/%C3%A9%20x?f%5B%5D=%5B"), ("/100%", "/100%25"),
      ("//example.com/a b%20", "/a%20b%20"),
      ("https://example.com/\"%22", "/%22%22"),
    ])
  func encoded(_ location: String, _ path: String) async throws {
    redirect(location)
    fixture.network.respond(to: try fixture.url(path), with: .ok("moved"))

    let resource = try await fixture.manager.load(fixture.url)

    #expect(resource.text == "moved" && fixture.network.requests.last?.path == path)
  }

  @Test("a location need not be UTF-8")
  func latin1() async throws {
    redirect([Array("/caf".utf8) + [0xE9]])
    fixture.network.respond(to: try fixture.url("/caf%E9"), with: .ok("moved"))
    #expect(try await fixture.manager.load(fixture.url).text == "moved")
  }

  @Test("equal Location fields are one, and different ones are refused")
  func repeated() async throws {
    fixture.network.respond(to: try fixture.url("/a"), with: .ok("moved"))
    redirect("/a", "/a")
    #expect(try await fixture.manager.load(fixture.url).text == "moved")
    redirect("/a", "/b")
    let error = try await fixture.failure(fixture.url, .policy(.reload))
    #expect(error.code == .redirectRefused && error.reason.contains("different Location fields"))
  }

  @Test(
    "a location with user information is refused, and the error does not repeat it",
    arguments: [
      "https://ada:secret@b.example/", "//secret@example.com/", "https://@b.example/", "https://b.example%40secret@evil.example/",
    ])
  func userInformation(_ location: String) async throws {
    redirect(location)
    let error = try await fixture.failure(fixture.url)
    #expect(error.code == .redirectRefused && error.reason.contains("user information"))
    #expect(!"\(error)".contains("secret") && fixture.network.requests.count == 1)
  }

  @Test("a relative location leaves the user information of the caller's URL alone")
  func inherited() async throws {
    let url = try #require(URL(string: "https://ada:secret@example.com/image.png"))
    redirect("/a")
    fixture.network.respond(to: try fixture.url("/a"), with: .ok("moved"))

    #expect(try await fixture.manager.load(url).text == "moved")
    #expect(fixture.network.requests.last?.headerFields[.authorization] == "Basic YWRhOnNlY3JldA==")
  }

  @Test("a backslash before the path does not choose another host")
  func backslash() async throws {
    redirect("https://example.com\\@evil.example/")
    let error = try await fixture.failure(fixture.url)
    #expect(error.code == .redirectRefused && fixture.network.requests.count == 1)
  }
}
