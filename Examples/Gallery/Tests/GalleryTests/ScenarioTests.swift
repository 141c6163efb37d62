import Foundation
import HTTPTypes
import Testing

@testable import Gallery

@Suite("The gallery's scenarios")
struct ScenarioTests {
  private static func documents(version: Int = 1) -> [String] {
    GalleryImage.all.map { Landscape(number: $0.number, version: version, isLarge: $0.isLarge).svg }
  }

  @Test("cold: each image comes from the network, and the origin sends it once")
  func cold() async throws {
    try await GalleryFixture.run { gallery in
      for _ in 0..<2 {
        let (responses, report) = try await gallery.run(.cold)
        #expect(responses.map(\.text) == Self.documents())
        #expect(responses.allSatisfy { $0.cacheStatus.contains("fwd=uri-miss") })
        #expect(report.requests == GalleryImage.count)
        #expect(report.notModified == 0)
        #expect(report.bytes == report.images.values.reduce(0) { $0 + $1.bytes })
        for (image, response) in zip(GalleryImage.all, responses) {
          let counted = try #require(report.images[image.path])
          #expect(counted.requests == 1)
          #expect((response.data.count...response.data.count + 500).contains(counted.bytes))
        }
      }
    }
  }

  @Test("warm: small images are hits in memory, large ones on disk, and the origin gets no request")
  func warm() async throws {
    try await GalleryFixture.run { gallery in
      _ = try await gallery.run(.cold)
      let (responses, report) = try await gallery.run(.warm)
      #expect(responses.map(\.text) == Self.documents())
      for (image, response) in zip(GalleryImage.all, responses) {
        #expect(response.cacheStatus.hasPrefix("Etagere;hit;ttl="))
        #expect(response.cacheStatus.hasSuffix(";detail=\(image.isLarge ? "disk" : "memory")"))
        #expect(response["Age"] != nil)
      }
      #expect(report.requests == 0)
      #expect(report.bytes == 0)
    }
  }

  @Test("a lookup finds the layer and the freshness of each image, and changes neither the cache nor the counters")
  func lookups() async throws {
    try await GalleryFixture.run { gallery in
      #expect(try await gallery.lookups().isEmpty)
      _ = try await gallery.run(.cold)
      for (scenario, isFresh) in [(Scenario.warm, true), (.stale, false), (.stale, false)] {
        try await gallery.prepare(scenario)
        let found = try await gallery.lookups()
        for image in GalleryImage.all {
          #expect(found[image.path] == CachedImage(layer: image.isLarge ? .disk : .memory, isFresh: isFresh))
        }
        #expect(try await gallery.report().requests == 0)
      }
      try await gallery.prepare(.cold)
      #expect(try await gallery.lookups().isEmpty)
    }
  }

  @Test("stale: each image is revalidated without a body, and is fresh afterwards")
  func stale() async throws {
    try await GalleryFixture.run { gallery in
      _ = try await gallery.run(.cold)
      let (responses, report) = try await gallery.run(.stale)
      #expect(responses.map(\.text) == Self.documents())
      #expect(responses.allSatisfy { $0.cacheStatus.contains("fwd=stale;fwd-status=304") })
      #expect(report.requests == GalleryImage.count)
      #expect(report.notModified == GalleryImage.count)
      #expect(report.bytes < GalleryImage.count * 500)
      let warm = try await gallery.run(.warm)
      #expect(warm.responses.allSatisfy { $0.cacheStatus.contains(";hit;") })
    }
  }

  @Test("changed: a third of the images is new, a different third each time, and the others are revalidated")
  func changed() async throws {
    try await GalleryFixture.run { gallery in
      _ = try await gallery.run(.cold)
      for round in 0..<3 {
        let (responses, report) = try await gallery.run(.changed)
        for (image, response) in zip(GalleryImage.all, responses) {
          let isNew = image.number % 3 == round
          // The origin's status is omitted if it equals that of the response (RFC 9211 §2.3).
          #expect(response.cacheStatus.hasPrefix("Etagere;fwd=stale;\(isNew ? "ttl" : "fwd-status=304")"), "\(image.path)")
          #expect(response.cacheStatus.hasSuffix(";stored") == isNew)
          let version = image.number % 3 <= round ? 2 : 1
          #expect(response["ETag"] == "\"\(image.number + 1)-v\(version)\"")
          #expect(response.text == Self.documents(version: version)[image.number])
        }
        #expect(report.requests == GalleryImage.count)
        #expect(report.notModified == GalleryImage.count * 2 / 3)
      }
    }
  }

  @Test("offline: each image is served stale with the reason, and is revalidated when the origin is back")
  func offline() async throws {
    try await GalleryFixture.run { gallery in
      _ = try await gallery.run(.cold)
      for _ in 0..<2 {
        let (responses, report) = try await gallery.run(.offline)
        #expect(responses.map(\.text) == Self.documents())
        #expect(responses.allSatisfy { $0.status == 200 && $0.cacheStatus.contains("fwd=stale;") })
        // The link resets connections.
        #expect(responses.allSatisfy { $0.cacheStatus.contains(";detail=connection") })
        #expect(report.requests == 0)
        #expect(report.bytes == 0)
      }
      let back = try await gallery.run(.warm)
      #expect(back.responses.allSatisfy { $0.cacheStatus.contains("fwd-status=304") })
      #expect(back.report.notModified == GalleryImage.count)
    }
  }

  @Test("offline, an image without a cached response is an error, and it loads when the origin is back")
  func missing() async throws {
    try await GalleryFixture.run { gallery in
      let purge = try #require(HTTPRequest.Method("PURGE"))
      _ = try await gallery.run(.cold)
      #expect(try await gallery.request(purge, "/images/2.svg").status == 200)
      let offline = try await gallery.run(.offline).responses
      #expect(offline.count { $0.status == 200 } == GalleryImage.count - 1)
      #expect(offline[1].status == 502)
      #expect(offline[1].cacheStatus.hasPrefix("Etagere; detail=connection"))
      let back = try await gallery.run(.stale)
      #expect(back.responses.map(\.status) == Array(repeating: 200, count: GalleryImage.count))
      #expect(back.report.notModified == GalleryImage.count - 1)
    }
  }

  @Test("the versions of the images stay the same while the origin is offline")
  func restart() async throws {
    try await GalleryFixture.run { gallery in
      _ = try await gallery.run(.changed)
      _ = try await gallery.run(.offline)
      let (responses, _) = try await gallery.run(.cold)
      #expect(responses[0].text == Self.documents(version: 2)[0])
      #expect(responses[1].text == Self.documents()[1])
    }
  }

  @Test("scenarios that are requested at the same time are prepared one after another")
  func concurrent() async throws {
    try await GalleryFixture.run { gallery in
      _ = try await gallery.run(.cold)
      try await withThrowingTaskGroup { group in
        for scenario in [Scenario.offline, .cold, .offline, .stale, .offline, .changed] {
          group.addTask { try await gallery.prepare(scenario) }
        }
        try await group.waitForAll()
      }
      let (responses, report) = try await gallery.run(.cold)
      #expect(responses.allSatisfy { $0.status == 200 })
      #expect(report.requests == GalleryImage.count)
    }
  }

  @Test("the gateway stores an image, and the browser does not")
  func directives() async throws {
    try await GalleryFixture.run { gallery in
      let response = try await gallery.request(.get, "/images/1.svg")
      #expect(response["Cache-Control"] == "no-store")
      #expect(response["CDN-Cache-Control"] == "max-age=3600, stale-if-error=86400")
      #expect(response["Content-Type"] == "image/svg+xml")
    }
  }
}
