#if canImport(ImageIO) || VIPS
import CacheCore
import CacheTesting
import Etagere
import Foundation
import HTTPTypes
import Testing

@Suite("A progressive JPEG")
struct ProgressiveImageTests {
  private let network = ScriptedDownloader()
  private let manager: ResourceManager
  private let url: URL
  private let file: Data

  init() throws {
    var configuration = try ResourceManager.Configuration.standard(folder: nil, downloader: network)
    configuration.clock = ManualClock()
    manager = ResourceManager(configuration)
    url = try #require(URL(string: "https://example.com/photograph.jpg"))
    let pixels = try #require(
      PixelBuffer(size: PixelSize(320, 240), channels: .rgb) { bytes in
        for index in bytes.indices {
          bytes[index] = UInt8(truncatingIfNeeded: (index / 3 % 320) / 2 + index / 7_000 + index % 13)
        }
      })
    var encoder = ImageEncoder(.jpeg, quality: 90)
    encoder.isProgressive = true
    file = try encoder.encode(DecodedImage(pixels))
  }

  @Test("previews are shown while the image arrives, and only the final image is cached")
  func previews() async throws {
    let gate = Gate()
    network.respond(to: url, with: .ok(file, cacheControl: "max-age=60").chunked(by: 100).bodyHeld(by: gate))
    // All bytes except for the end.
    gate.letThrough(file.count / 100 - 2)
    var (previews, final) = ([DecodedImage](), Resource<DecodedImage>?.none)
    for try await event in manager.imageEvents(for: url, .resize(.fit(80, 80)) + .gray) {
      switch event {
      case .preview(let preview):
        previews.append(preview)
        gate.open()
      case .final(let resource): final = resource
      case .progress, .stale: break
      }
    }
    #expect((1...4).contains(previews.count))
    #expect(previews.allSatisfy { $0.isPartial && $0.size == PixelSize(80, 60) && $0.pixels[3, 3].red == $0.pixels[3, 3].blue })
    let whole = try #require(final)
    #expect(!whole.value.isPartial && whole.source == .network)
    let kept = try await manager.load(url, as: .image(.resize(.fit(80, 80)) + .gray))
    #expect(kept.source == .memory && kept.value.pixels.bytes == whole.value.pixels.bytes && !kept.value.isPartial)
    #expect(network.requests.count == 1)
  }

  /// A downloader that records how large a body each request permits it to collect.
  private final class PermissionRecorder: Downloader {
    let id = ComponentID.unique(PermissionRecorder.self)
    let limits = Lock<[Int]>([])
    private let base: ScriptedDownloader

    init(_ base: ScriptedDownloader) { self.base = base }

    func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
      limits.withLock { $0.append(request.collectUpTo) }
      return try await base.download(request)
    }
  }

  @Test("the bytes of an image with previews are not collected before they are shown")
  func uncollected() async throws {
    let recorder = PermissionRecorder(network)
    network.respond(to: url, with: .ok(file, cacheControl: "no-store"), .ok(file, cacheControl: "no-store"))
    let options = RequestOptions { $0.downloader = .use(recorder) }
    for try await _ in manager.imageEvents(for: url, options: options) {}
    _ = try await manager.load(url, options: options)
    #expect(recorder.limits.withLock { $0 } == [0, 65_536])
  }

  @Test("a transform makes the previews from the response, and has none if it throws for them", arguments: [true, false])
  func transforms(hasPreviews: Bool) async throws {
    let gate = Gate()
    let response = ScriptedResponse.ok(file, cacheControl: "max-age=60", fields: [.contentLanguage: "de"])
    network.respond(to: url, with: response.chunked(by: 100).bodyHeld(by: gate))
    gate.letThrough(file.count / 100 - 2)
    let (count, calls) = (file.count, Gate())
    let decoder = ResourceTransform<DecodedImage>.image(.resize(.fit(80, 80)))
    let transform = ResourceTransform<DecodedImage>(id: "own", cost: { $0.cost }) { body, metadata throws(CacheError) in
      let bytes = try await body.collect()
      guard metadata.response.headerFields[.contentLanguage] == "de" else { throw CacheError(.other, reason: "no field") }
      if bytes.count < count { await calls.pass() }
      guard hasPreviews || bytes.count == count else { throw CacheError(.decodingFailed, reason: "cut") }
      return try await decoder.make(ResourceBody(bytes), metadata)
    }
    let request = ResourceRequest(url, headerFields: [.acceptLanguage: "de"])
    let opening = Task {
      await calls.arrived()
      calls.open()
      if !hasPreviews { gate.open() }
    }
    var previews: [PixelSize] = []
    for try await event in manager.imageEvents(for: request, as: transform) {
      if case .preview(let preview) = event {
        previews.append(preview.size)
        #expect(preview.isPartial)
        gate.open()
      }
    }
    await opening.value
    #expect(previews.isEmpty != hasPreviews && previews.allSatisfy { $0 == PixelSize(80, 60) })
    #expect(network.requests.map { $0.headerFields[.acceptLanguage] } == ["de"])
  }

  @Test("an image from the cache has no previews, and an error ends the stream")
  func withoutPreviews() async throws {
    network.respond(to: url, with: .ok(file, cacheControl: "max-age=60"), .ok("not an image"))
    _ = try await manager.load(url)
    var events: [String] = []
    for try await event in manager.imageEvents(for: url) {
      switch event {
      case .preview: events.append("preview")
      case .final(let resource): events.append("\(resource.source)")
      case .progress, .stale: events.append("other")
      }
    }
    #expect(events == ["memory"])
    let error = await #expect(throws: CacheError.self) {
      for try await _ in manager.imageEvents(for: url, options: RequestOptions { $0.policy = .reload }) {}
    }
    #expect(error?.code == .decodingFailed)
  }

  @Test("ending the iteration stops the transfer")
  func ended() async throws {
    let gate = Gate()
    network.respond(to: url, with: .ok(file).chunked(by: 100).bodyHeld(by: gate))
    gate.letThrough(file.count / 100 - 2)
    for try await event in manager.imageEvents(for: url, .resize(.fit(80, 80))) {
      if case .preview = event { break }
    }
    try await Polling.until { network.cancelledBodies == 1 }
  }
}
#endif
