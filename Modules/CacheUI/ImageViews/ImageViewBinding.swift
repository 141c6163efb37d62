internal import Etagere

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The logic that the image views of UIKit and AppKit share: it shows the image of a model in a view.
///
/// The view owns the binding, so the load ends with the view.
@MainActor
package final class ImageViewBinding {
  /// A closure that changes the view. It receives the image, or `nil` for the placeholder, and the duration of a
  /// crossfade, or `nil`.
  package typealias Display = @MainActor (_ image: DisplayImage?, _ crossfade: Duration?) -> Void
  package typealias Completion = @MainActor (Result<Resource<DisplayImage>, CacheError>) -> Void

  package private(set) var model: ImageModel
  private var manager: ResourceManager
  private var display: Display = { _, _ in }
  private var crossfade: Duration?
  private var completion: Completion?
  /// The image that the view shows.
  private var displayed: DisplayImage?
  /// Whether the model is starting a load. An image that is available right after that appears without a crossfade.
  private var isStarting = false
  private var animation: Task<Void, Never>?
  private var animates = true

  package init(manager: ResourceManager) {
    self.manager = manager
    model = ImageModel(manager: manager)
  }

  deinit { animation?.cancel() }

  /// Loads an image into the view. An earlier load of the view is cancelled, and its completion is not called.
  package func load(
    _ url: URL?, _ processor: ImageProcessor, scale: Double, options: RequestOptions, manager: ResourceManager, animates: Bool,
    crossfade: Duration?, display: @escaping Display, completion: Completion?
  ) {
    if manager !== self.manager {
      self.manager = manager
      model.cancel()
      model.onChange = nil
      model = ImageModel(manager: manager)
    }
    (self.display, self.crossfade, self.completion, self.animates) = (display, crossfade, completion, animates)
    animation?.cancel()
    animation = nil
    model.onChange = { [weak self] in self?.modelChanged() }
    isStarting = true
    model.load(url, processor, scale: scale, options: options)
    isStarting = false
    // The new load may have another placeholder.
    if model.image == nil { show(nil, crossfade: nil) }
    update(crossfade: nil)
  }

  private func modelChanged() {
    guard !isStarting else { return }
    // Frames of an animation change without a crossfade.
    update(crossfade: animation == nil ? crossfade : nil)
  }

  private func show(_ image: DisplayImage?, crossfade: Duration?) {
    displayed = image
    display(image, crossfade)
  }

  private func update(crossfade: Duration?) {
    if let image = model.image {
      if !image.isSame(as: displayed) { show(image, crossfade: crossfade) }
    } else if displayed != nil {
      show(nil, crossfade: nil)
    }
    switch model.phase {
    case .loaded(let resource):
      end(.success(resource))
      animate(resource.value)
    case .failed(let error): end(.failure(error))
    case .empty, .loading, .stale: break
    }
  }

  private func end(_ result: Result<Resource<DisplayImage>, CacheError>) {
    let completion = completion
    self.completion = nil
    completion?(result)
  }

  private func animate(_ image: DisplayImage) {
    guard animates, image.frameCount > 1, animation == nil else { return }
    animation = Task { [weak self, weak model] in
      await model?.animate()
      if !Task.isCancelled { self?.animation = nil }
    }
  }
}
