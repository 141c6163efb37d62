// A program that lets views of CacheUI appear in the tree that the declarations of SwiftUI build. It is linked with the code of
// the package and with these declarations, compiled as libraries.
import CacheUI
import FoundationEssentials
import Glibc
import SwiftUI

@main @MainActor
struct ViewTree {
  static func main() async throws {
    let memory = MemoryCache()
    var configuration = try ResourceManager.Configuration.standard(folder: nil)
    configuration.memory = memory
    let manager = ResourceManager(configuration)
    // In place of the shared manager, which opens a folder.
    EnvironmentValues._current.resourceManager = manager
    let url = URL(string: "https://example.com/image.png")
    let options = RequestOptions { $0.policy = .cacheOnly }
    var failures = 0

    /// Lets a view appear, and checks that it is one view that loads.
    func check<Content: View>(_ name: String, _ view: (_ created: @escaping (ImageModel) -> Void) -> CachedImage<Content>) {
      for isDownsampled in [false, true] {
        var model: ImageModel?
        var image = view { model = $0 }.requestOptions(options)
        if isDownsampled { image = image.downsampledToView() }
        let nodes = _nodes(of: image.resourceManager(manager))
        for node in nodes { for action in node.appear { action() } }
        let isLoading = model?.phase.isLoading ?? false
        if nodes.count == 1, isLoading { continue }
        failures += 1
        print("\(name)\(isDownsampled ? ", downsampled" : ""): \(nodes.count) views, \(isLoading ? "loading" : "not loading")")
      }
    }

    check("one view") { created in
      CachedImage(url) { model in
        let _ = created(model)
        Color.gray
      }
    }
    check("no view") { created in
      CachedImage(url) { model in
        let _ = created(model)
        if let image = model.image.flatMap({ Image($0) }) { image }
      }
    }
    check("an empty placeholder") { created in
      CachedImage(url) { image in
        image
      } placeholder: { model in
        let _ = created(model)
        EmptyView()
      }
    }
    check("two views") { created in
      CachedImage(url) { model in
        let _ = created(model)
        Color.gray
        Color.gray
      }
    }

    check("a request") { created in
      CachedImage(request: url.map { ResourceRequest($0) }) { model in
        let _ = created(model)
        Color.gray
      }
    }
    check("a transform") { created in
      CachedImage(url) { model in
        let _ = created(model)
        Color.gray
      }
      .transform(.displayImage(decoder: ImageDecoder()))
    }

    // An image in memory is in the content before any action.
    let known = try unwrap(URL(string: "https://example.com/known.png"))
    _ = CachedImage(request: ResourceRequest(known))
    try await manager.store(Data([1]), for: known)
    let revision = try unwrap(manager.cachedInMemory(known)).revision
    let pixels = try unwrap(PixelBuffer(size: PixelSize(1, 1)) { _ in })
    let shown = try DisplayImage(DecodedImage(pixels))
    let transforms: [ResourceTransform<DisplayImage>] = [.displayImage(), .displayImage(.resize(.fill(200, 100)), scale: 2)]
    for transform in transforms {
      let key = CacheKey(resource: known.absoluteString, transform: transform.id)
      memory.insert(MemoryEntry(shown, cost: 4, revision: revision), for: key)
    }
    for sizing in ["original", "downsampled", "transform"] {
      var firstImages: [DisplayImage?] = []
      var image = CachedImage(known) { model in
        let _ = firstImages.append(model.image)
        Color.gray
      }
      if sizing == "downsampled" { image = image.downsampledToView() }
      if sizing == "transform" { image = image.transform { .displayImage(.covering($0), scale: $1) } }
      _ = _nodes(of: image)
      if firstImages.count == 1, firstImages[0] != nil { continue }
      failures += 1
      print("an image in memory, \(sizing): not in the first content")
    }

    if failures > 0 { Glibc.exit(1) }
    print("the views appear and load")
  }

  private static func unwrap<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw CacheError(.notCached, reason: "a value is missing") }
    return value
  }
}
