import CacheTesting
import Etagere
import Foundation
import HTTPTypes
import Testing

@Suite("Images of a standard manager")
struct ImageTests {
  private static func manager(_ network: ScriptedDownloader) throws -> ResourceManager {
    ResourceManager(try .standard(folder: nil, downloader: network))
  }

  private func address() throws -> URL { try #require(URL(string: "https://example.com/a.png")) }

  #if canImport(ImageIO) || VIPS
  private func image(_ gray: UInt8, width: Int = 40) throws -> Data {
    let pixels = PixelBuffer(size: PixelSize(width, 20), channels: .gray) {
      $0.copyBytes(from: repeatElement(gray, count: $0.count))
    }
    return try ImageEncoder(.png).encode(DecodedImage(#require(pixels)))
  }

  @Test("an image is requested, decoded and processed once, however often it is shown")
  func once() async throws {
    // Given
    let network = ScriptedDownloader()
    let url = try address()
    network.respond(to: url, with: .ok(try image(77), cacheControl: "max-age=3600"))
    let manager = try Self.manager(network)
    // When
    let whole = try await manager.image(for: url)
    let small = try await manager.image(for: url, .fill(10, 10) + .circle, scale: 2)
    let again = try await manager.load(url, as: .image(.fill(10, 10) + .circle, scale: 2))
    // Then
    #expect(whole.size == PixelSize(40, 20) && whole.pixels[1, 1] == RGBA(77, 77, 77) && whole.url == url)
    #expect(small.size == PixelSize(10, 10) && small.pointWidth == 5 && small.pixels[0, 0].alpha == 0)
    #expect(again.source == .memory && again.value.pixels.bytes == small.pixels.bytes)
    try network.verify()
  }

  @Test("an image is made again if the original has changed, and not if it is confirmed")
  func changed() async throws {
    // Given
    let network = ScriptedDownloader()
    let url = try address()
    network.respond(
      to: url, with: .ok(try image(1), etag: "\"1\"", cacheControl: "no-cache"),
      .notModified(etag: "\"1\"", cacheControl: "no-cache"),
      .ok(try image(200, width: 60), etag: "\"2\"", cacheControl: "no-cache"))
    let manager = try Self.manager(network)
    let transform = ResourceTransform.image(.resize(.fit(10, 10)))
    // When
    let first = try await manager.load(url, as: transform)
    let confirmed = try await manager.load(url, as: transform)
    let second = try await manager.load(url, as: transform)
    // Then
    #expect(first.value.size == PixelSize(10, 5) && first.source == .network)
    #expect(confirmed.source == .revalidated && confirmed.value.pixels.bytes == first.value.pixels.bytes)
    #expect(second.value.size == PixelSize(10, 3) && second.value.pixels[5, 1] == RGBA(200, 200, 200))
    #expect(second.source == .network)
    try network.verify()
  }

  @Test("a response that is not an image is an error with the URL and the content, and no image is cached")
  func none() async throws {
    // Given
    let network = ScriptedDownloader()
    let url = try address()
    network.respond(to: url, with: .ok("<!DOCTYPE html><html>Sign in</html>", cacheControl: "max-age=3600"))
    let manager = try Self.manager(network)
    for _ in 0..<2 {
      // When
      let error = await failure { _ = try await manager.image(for: url) }
      // Then
      #expect(error?.code == .decodingFailed)
      #expect(error?.description == "https://example.com/a.png: not an image: the bytes are an HTML page")
    }
    try network.verify()
  }

  @Test("an image is decoded once for many simultaneous loads")
  func shared() async throws {
    let network = ScriptedDownloader()
    let url = try address()
    network.respond(to: url, with: .ok(try image(9), cacheControl: "max-age=3600"))
    let manager = try Self.manager(network)
    let count = Lock(0)
    let counting = ImageProcessor.custom("count") { pixels in
      count.withLock { $0 += 1 }
      return pixels
    }
    try await withThrowingTaskGroup(of: PixelSize.self) { group in
      for _ in 0..<50 { group.addTask { try await manager.image(for: url, counting).size } }
      for try await size in group { #expect(size == PixelSize(40, 20)) }
    }
    #expect(count.withLock { $0 } == 1)
    try network.verify()
  }
  #else
  @Test("without an engine, the error explains how to get one")
  func engine() async throws {
    let manager = try Self.manager(ScriptedDownloader())
    let gif = try #require(URL(string: "data:image/gif;base64,R0lGODlhAQABAAAAACw="))
    let error = await failure { _ = try await manager.image(for: gif) }
    #expect(error?.code == .unsupported)
    #expect(error?.reason.contains("trait VIPS") == true)
  }
  #endif
}
