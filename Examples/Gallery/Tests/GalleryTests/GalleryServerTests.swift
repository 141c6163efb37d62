import ArgumentParser
import Foundation
import GatewayServer
import HTTPServing
import HTTPTypes
import LoopbackOrigin
import NIOPosix
import Testing

@testable import Gallery

@Suite("The gallery's server and command")
struct GalleryServerTests {
  @Test("the page has a tile for each image, has no external references, and is not stored by browsers")
  func page() async throws {
    try await GalleryFixture.run { gallery in
      let page = try await gallery.request(.get, "/")
      #expect(page["Content-Type"] == "text/html; charset=utf-8")
      #expect(page["Cache-Control"] == "no-store")
      #expect(page["Content-Security-Policy"]?.hasPrefix("default-src 'none'") == true)
      for image in GalleryImage.all { #expect(page.text.contains("data-path=\"\(image.path)\"")) }
      let styles = try await gallery.request(.get, "/gallery.css")
      #expect(styles["Content-Type"] == "text/css; charset=utf-8")
      let script = try await gallery.request(.get, "/gallery.js")
      #expect(script["Content-Type"] == "text/javascript; charset=utf-8")
      for document in [page, styles, script] { #expect(!document.text.contains("://")) }
      let head = try await gallery.request(.head, "/")
      #expect(head.status == 200)
      #expect(head.data.isEmpty)
    }
  }

  @Test("a wrong method or an unknown run is refused, and an unknown path is a 404 from the origin")
  func refusals() async throws {
    try await GalleryFixture.run { gallery in
      let posted = try await gallery.request(.post, "/")
      #expect(posted.status == 405)
      #expect(posted["Allow"] == "GET, HEAD")
      let got = try await gallery.request(.get, "/runs/cold")
      #expect(got.status == 405)
      #expect(got["Allow"] == "POST")
      #expect(try await gallery.request(.post, "/runs/hot").text == "no such path '/runs/hot'\n")
      #expect(try await gallery.request(.get, "/images/99.svg").status == 404)
      for site in ["cross-site", "same-site"] {
        #expect(
          try await gallery.request(.post, "/runs/cold", fields: [try #require(HTTPField.Name("Sec-Fetch-Site")): site]).status
            == 403)
      }
      #expect(try await gallery.report() == OriginReport(requestsOfNone: GalleryImage.all.map(\.path)))
    }
  }

  @Test("the folder of the disk cache is removed at the end")
  func folder() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "gallery-test-\(UUID().uuidString)")
    try await GalleryFixture.run {
      $0.folder = folder
    } _: { gallery in
      _ = try await gallery.run(.cold)
      #expect(FileManager.default.fileExists(atPath: folder.path(percentEncoded: false)))
    }
    #expect(!FileManager.default.fileExists(atPath: folder.path(percentEncoded: false)))
  }

  @Test("a port in use is an error in one line")
  func takenPort() async throws {
    let other = try await OriginServer.start()
    let settings = GallerySettings(listen: HostAndPort(host: "127.0.0.1", port: other.port))
    let service = GalleryService(settings: settings, group: MultiThreadedEventLoopGroup.singleton)
    let error = await #expect(throws: (any Error).self) { try await service.run() }
    #expect(error.map { "\($0)" } == "cannot listen on 127.0.0.1:\(other.port): Address already in use")
    await other.stop()
  }

  @Test("options reach the settings")
  func options() throws {
    let command = try GalleryCommand.parse(["--listen", "[::1]:0", "--latency", "5", "--bandwidth", "2.5"])
    #expect(command.settings.listen == HostAndPort(host: "::1", port: 0))
    #expect(command.settings.link == NetworkLink(bitsPerSecond: 2_500_000, latency: .milliseconds(5)))
    let defaults = try GalleryCommand.parse([]).settings
    #expect(defaults.listen.description == "127.0.0.1:8080")
    #expect(defaults.link == GallerySettings().link)
  }

  @Test(
    "an invalid value is refused with the name of its option",
    arguments: [
      (["--listen", "8080"], "'8080' is not HOST:PORT"), (["--listen", "h:70000"], "'h:70000' is not HOST:PORT"),
      (["--latency", "-1"], "latency"), (["--latency=-1"], "--latency -1 is not between"),
      (["--bandwidth", "0"], "--bandwidth 0.0 is not between"), (["--bandwidth", "inf"], "--bandwidth inf is not between"),
      (["--open"], "--open"), (["extra"], "extra"),
    ])
  func refused(arguments: [String], text: String) {
    let error = #expect(throws: (any Error).self) { try GalleryCommand.parse(arguments) }
    #expect(error.map { GalleryCommand.fullMessage(for: $0).contains(text) } == true)
  }
}

@Suite("The gallery's images")
struct LandscapeTests {
  /// The largest body that the gateway caches in memory.
  private static let limit = 128 << 10

  @Test("in every version, large images exceed the limit of the memory cache and small ones do not")
  func sizes() {
    for image in GalleryImage.all {
      for version in 1...Palette.all.count {
        let size = Landscape(number: image.number, version: version, isLarge: image.isLarge).svg.utf8.count
        #expect(image.isLarge ? size > Self.limit : size < Self.limit, "\(image.path), version \(version): \(size) bytes")
      }
    }
    let small = GalleryImage.all.filter { !$0.isLarge }.reduce(0) { $0 + $1.landscape.svg.utf8.count }
    #expect(small < 1 << 20)
  }

  @Test("a document depends only on its number and version")
  func versions() {
    for image in GalleryImage.all {
      var next = image
      next.version += 1
      #expect(image.landscape.svg == image.landscape.svg)
      #expect(image.landscape.svg != next.landscape.svg)
      #expect(image.landscape.motif == next.landscape.motif)
      #expect(image.landscape.title != next.landscape.title)
    }
  }

  @Test(
    "numbers are written with at most two decimals",
    arguments: [(0.0, "0"), (1.5, "1.5"), (-0.05, "-0.05"), (12.345, "12.35"), (3.999, "4")])
  func numbers(number: Double, text: String) { #expect(Canvas.text(number) == text) }

  @Test("colors are mixed channel by channel")
  func colors() {
    let (black, orange): (Color, Color) = (0x000000, 0xFF8000)
    #expect(black.mixed(with: orange, 0.5).description == "#804000")
    #expect(black.mixed(with: orange, 2) == orange)
    #expect(Color(rgb: 0x00000A).description == "#00000a")
  }
}

extension OriginReport {
  /// A report without requests.
  fileprivate init(requestsOfNone paths: [String]) {
    self.init()
    for path in paths { images[path] = Image() }
  }
}
