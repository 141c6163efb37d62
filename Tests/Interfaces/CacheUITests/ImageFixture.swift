#if canImport(ImageIO) || VIPS
import CacheTesting
import CacheUI
import Foundation
import HTTPTypes
import Testing

/// A model over a scripted network and a manual clock.
@MainActor
final class ImageFixture {
  let clock = ManualClock()
  let network: ScriptedDownloader
  let memory: MemoryCache
  let manager: ResourceManager
  let model: ImageModel
  let url: URL
  /// The states after each change of the model: the phase and the first pixel of the image, a hyphen for the placeholder, or
  /// "nothing" while that is hidden.
  private(set) var states: [String] = []

  init(_ change: (inout ResourceManager.Configuration) -> Void = { _ in }) throws {
    network = ScriptedDownloader(clock: clock)
    memory = MemoryCache(limits: .init(cost: 10 << 20), clock: clock)
    var configuration = try ResourceManager.Configuration.standard(folder: nil, downloader: network, clock: clock)
    configuration.memory = memory
    configuration.store = VolatileStore(clock: clock)
    change(&configuration)
    manager = ResourceManager(configuration)
    model = ImageModel(manager: manager)
    url = try #require(URL(string: "https://example.com/image.png"))
    model.onChange = { [weak self] in self?.record() }
  }

  private func record() {
    guard model.progress == nil else { return }
    let content = model.hidesPlaceholder ? "nothing" : Self.color(of: model.image)
    states.append("\(name(of: model.phase)) \(content)")
  }

  private func name(of phase: ImagePhase) -> String {
    switch phase {
    case .empty: "empty"
    case .loading: "loading"
    case .stale: "stale"
    case .loaded: "loaded"
    case .failed(let error): "failed(\(error.code.rawValue))"
    }
  }

  func url(_ name: String) throws -> URL { try #require(URL(string: "https://example.com/\(name).png")) }

  /// Waits until no load is running.
  func ended() async throws { try await Polling.until { @MainActor in !self.model.phase.isLoading } }

  /// Loads an image into the cache, for a display without a processor.
  func cache(_ url: URL, _ response: ScriptedResponse) async throws {
    network.respond(to: url, with: response)
    _ = try await manager.load(url, as: .displayImage())
  }

  nonisolated static func color(of image: DisplayImage?) -> String {
    guard let image else { return "-" }
    return image.withUnsafeBytes { bytes in
      switch (bytes[2], bytes[1], bytes[0]) {
      case (255, 0, 0): "red"
      case (0, 255, 0): "green"
      case (0, 0, 255): "blue"
      default: "other"
      }
    }
  }
}

/// The results of loads.
@MainActor
final class LoadResults {
  private(set) var values: [String] = []

  func add(_ result: Result<Resource<DisplayImage>, CacheError>) {
    switch result {
    case .success(let resource): values.append("\(resource.source)")
    case .failure(let error): values.append(error.code.rawValue)
    }
  }
}

/// A fake image view with a binding, which records the images that it should show.
@MainActor
final class BoundView {
  private(set) var binding: ImageBinding
  private(set) var shown: [String] = []
  private(set) var results: [String] = []

  init(_ fixture: ImageFixture) {
    binding = ImageBinding(manager: fixture.manager) { _, _ in }
    binding = ImageBinding(manager: fixture.manager) { [weak self] content, crossfade in
      let image: (DisplayImage) -> String? = { ImageFixture.color(of: $0) + ($0.isTemplate ? " template" : "") }
      let name = content.platformImage(image, placeholder: "-") ?? "nothing"
      self?.shown.append(name + (crossfade == nil ? "" : " with a crossfade"))
    }
  }

  func setImage(
    from url: URL?, _ processor: ImageProcessor? = ImageProcessor.none, size: PixelSize? = nil, animates: Bool = true
  ) {
    let transform = processor.map { ViewTransform.fixed(.displayImage($0)) } ?? .covering()
    setImage(from: url.map { ResourceRequest($0) }, as: transform, size: size, animates: animates)
  }

  func setImage(
    from request: ResourceRequest?, as transform: ViewTransform, size: PixelSize? = nil,
    settings: ImageModel.Settings = ImageModel.Settings(), animates: Bool = true
  ) {
    binding.load(
      request, as: transform, size: size, scale: 1, settings: settings, animates: animates, crossfade: .milliseconds(200),
      completion: { [weak self] result in
        switch result {
        case .success(let resource): self?.results.append("\(resource.source)")
        case .failure(let error): self?.results.append(error.code.rawValue)
        }
      })
  }

  func ended() async throws { try await Polling.until { @MainActor in !self.binding.model.phase.isLoading } }
}

extension DisplayImage {
  /// The color and the size in pixels.
  var name: String { "\(ImageFixture.color(of: self)) \(size.width)x\(size.height)" }
}

extension ImageModel {
  /// Loads the image of a URL with a transform.
  func load(_ url: URL?, as transform: ResourceTransform<DisplayImage>, options: RequestOptions = RequestOptions()) {
    load(url.map { ResourceRequest($0, options: options) }, as: transform)
  }

  /// Prepares a view with an image of its own size.
  func prepare(_ url: URL?, scale: Double, options: RequestOptions) {
    let request = url.map { ResourceRequest($0, options: options) }
    prepare(request, as: .fixed(.displayImage(scale: scale)), size: nil, scale: scale)
  }

  /// Prepares a view with an image of the view's size.
  func prepare(_ url: URL?, covering size: PixelSize?, scale: Double, options: RequestOptions) {
    prepare(url.map { ResourceRequest($0, options: options) }, as: .covering(), size: size, scale: scale)
  }

  /// Loads an image in the size of a view.
  func load(_ url: URL?, covering size: PixelSize?, scale: Double, options: RequestOptions) {
    load(url.map { ResourceRequest($0, options: options) }, as: .covering(), size: size, scale: scale)
  }
}

extension ScriptedResponse {
  /// Returns a 200 response with an image of one color, which is fresh for a minute.
  static func image(_ file: Data, etag: String? = nil) -> ScriptedResponse { .ok(file, etag: etag, cacheControl: "max-age=60") }
}

/// Image files of one color.
enum ImageFile {
  static let red = png(RGBA(255, 0, 0))
  static let green = png(RGBA(0, 255, 0))

  static func png(_ color: RGBA, width: Int = 4, height: Int = 4) -> Data {
    let pixels = PixelBuffer(size: PixelSize(width, height)) { bytes in
      for start in stride(from: 0, to: bytes.count, by: 4) {
        (bytes[start], bytes[start + 1], bytes[start + 2], bytes[start + 3]) = (color.red, color.green, color.blue, color.alpha)
      }
    }
    guard let pixels, let file = try? ImageEncoder(.png).encode(DecodedImage(pixels)) else { return Data() }
    return file
  }

  /// A GIF of one pixel with a red, a green and a blue frame of 100, 200 and 300 ms.
  static func animated(loops: UInt8) -> Data { animated(delays: [10, 20, 30], loops: loops) }

  /// A GIF of one pixel, whose frames are red, green and blue in turn.
  ///
  /// - Parameters:
  ///   - delays: The delay of each frame in hundredths of a second.
  ///   - loops: The number of repetitions after the first showing, or 0 for no end.
  ///   - damaged: The index of a frame with a code that has no meaning.
  static func animated(delays: [UInt8], loops: UInt8, damaged: Int? = nil) -> Data {
    var file = Data("GIF89a".utf8)
    file += [1, 0, 1, 0, 0x91, 0, 0] + [255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0] as [UInt8]
    file += [0x21, 0xFF, 11] + Data("NETSCAPE2.0".utf8) + [3, 1, loops, 0, 0]
    // One pixel: a clear code, the color's code and the end code, three bits each.
    for (index, delay) in delays.enumerated() {
      let code: UInt8 = index == damaged ? 0x7C : 0x44 + 8 * UInt8(index % 3)
      file += [0x21, 0xF9, 4, 0, delay, 0, 0, 0, 0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, code, 1, 0]
    }
    return file + [0x3B]
  }
}
#endif
