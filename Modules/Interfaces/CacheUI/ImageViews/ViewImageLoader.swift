public import Etagere

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A view that loads its image with `setImage(from:)`: `UIImageView` and `NSImageView`. For other objects, there is
/// ``ImageBinding``.
@MainActor
public protocol ImageLoadingView: AnyObject {
  /// The type of the images of the framework: `UIImage` or `NSImage`.
  associatedtype PlatformImage
  /// The loader of the image that `setImage(from:)` shows.
  var viewImageLoader: ViewImageLoader<PlatformImage> { get }
}

extension ImageLoadingView {
  /// Loads an image and shows it. Until it is available, the view shows the placeholder, or the earlier image if that is the
  /// image of the same URL in another size or ``ImageModel/Settings/keepsPreviousImage`` is set.
  ///
  /// ```swift
  /// imageView.setImage(from: url, crossfade: .milliseconds(200))
  /// imageView.setImage(from: url) { result in show(result) }
  /// ```
  ///
  /// Call this method again when a cell or row is reused: it cancels the earlier load, whose image no longer appears. The load
  /// ends with the view. An animated image plays while the view is in a window.
  ///
  /// - Parameters:
  ///   - url: The URL of the image, or `nil` to show only the placeholder.
  ///   - placeholder: The image that is shown during the load and after an error.
  ///   - processor: The steps that change the image. With `nil`, the image is resized to cover the view's bounds, after a layout
  ///     if these are empty, and again after the view was enlarged. A view that is empty after its layout, because it takes the
  ///     size of its image, loads the whole image. For a view that is never laid out, pass `ImageProcessor.none`, which loads the
  ///     whole image immediately.
  ///   - crossfade: The duration of the crossfade to an image that was not in memory, or `nil` for no crossfade.
  ///   - showsIndicator: Whether an activity indicator is shown over the view while ``ImageModel/showsLoadingIndicator`` is set.
  ///   - options: The options of the load.
  ///   - settings: The settings of the view's model.
  ///   - manager: The manager that loads the image.
  ///   - completion: A closure that is called once on the main actor, unless another load of this view begins before.
  /// - Returns: The model of the view, which cancels, retries and reports progress.
  @discardableResult
  public func setImage(
    from url: URL?, placeholder: PlatformImage? = nil, _ processor: ImageProcessor? = nil, crossfade: Duration? = nil,
    showsIndicator: Bool = false, options: RequestOptions = RequestOptions(),
    settings: ImageModel.Settings = ImageModel.Settings(), manager: ResourceManager = .shared,
    completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    let (request, loader) = (url.map { ResourceRequest($0, options: options) }, viewImageLoader)
    let transform = processor.map { ViewTransform.fixed(.displayImage($0, scale: loader.state().scale)) } ?? .covering()
    return loader.load(request, transform, placeholder, crossfade, showsIndicator, settings, manager, completion)
  }

  /// Loads the image of a request with a transform and shows it, as `setImage(from:)` does for a URL.
  ///
  /// ```swift
  /// imageView.setImage(from: ResourceRequest(url), as: .displayImage(decoder: ImageDecoder { $0.firstFrameOnly = true }))
  /// ```
  ///
  /// - Parameters:
  ///   - request: The request of the image, or `nil` to show only the placeholder.
  ///   - transform: The transform that makes the image, in the size that it chooses.
  ///   - placeholder: The image that is shown during the load and after an error.
  ///   - crossfade: The duration of the crossfade to an image that was not in memory, or `nil` for no crossfade.
  ///   - showsIndicator: Whether an activity indicator is shown over the view while ``ImageModel/showsLoadingIndicator`` is set.
  ///   - settings: The settings of the view's model.
  ///   - manager: The manager that loads the image.
  ///   - completion: A closure that is called once on the main actor, unless another load of this view begins before.
  /// - Returns: The model of the view, which cancels, retries and reports progress.
  @discardableResult
  public func setImage(
    from request: ResourceRequest?, as transform: ResourceTransform<DisplayImage>, placeholder: PlatformImage? = nil,
    crossfade: Duration? = nil, showsIndicator: Bool = false, settings: ImageModel.Settings = ImageModel.Settings(),
    manager: ResourceManager = .shared, completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    viewImageLoader.load(request, .fixed(transform), placeholder, crossfade, showsIndicator, settings, manager, completion)
  }

  /// Loads the image of a request with a transform for the size of the view and shows it.
  ///
  /// ```swift
  /// imageView.setImage(
  ///   from: ResourceRequest(url), as: { size, scale in .displayImage(.covering(size) + .circle, scale: scale) })
  /// ```
  ///
  /// The image is loaded after a layout if the view's bounds are empty, and again after the view was enlarged.
  ///
  /// - Parameters:
  ///   - request: The request of the image, or `nil` to show only the placeholder.
  ///   - transform: A closure that returns the transform for the view's size in pixels and the number of pixels per point. The
  ///     size is `nil` for a view that takes the size of its image. The view retains the closure.
  ///   - placeholder: The image that is shown during the load and after an error.
  ///   - crossfade: The duration of the crossfade to an image that was not in memory, or `nil` for no crossfade.
  ///   - showsIndicator: Whether an activity indicator is shown over the view while ``ImageModel/showsLoadingIndicator`` is set.
  ///   - settings: The settings of the view's model.
  ///   - manager: The manager that loads the image.
  ///   - completion: A closure that is called once on the main actor, unless another load of this view begins before.
  /// - Returns: The model of the view, which cancels, retries and reports progress.
  @discardableResult
  public func setImage(
    from request: ResourceRequest?,
    as transform: @escaping @Sendable (_ size: PixelSize?, _ scale: Double) -> ResourceTransform<DisplayImage>,
    placeholder: PlatformImage? = nil, crossfade: Duration? = nil, showsIndicator: Bool = false,
    settings: ImageModel.Settings = ImageModel.Settings(), manager: ResourceManager = .shared,
    completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    viewImageLoader.load(request, .sized(transform), placeholder, crossfade, showsIndicator, settings, manager, completion)
  }

  // The literal `nil` selects the forms above, because these are disfavored.

  /// Loads the image of a URL with a transform and shows it: see `setImage(from:as:)` for a request. To set options of the load,
  /// pass a request.
  @_disfavoredOverload @discardableResult
  public func setImage(
    from url: URL?, as transform: ResourceTransform<DisplayImage>, placeholder: PlatformImage? = nil,
    crossfade: Duration? = nil, showsIndicator: Bool = false, settings: ImageModel.Settings = ImageModel.Settings(),
    manager: ResourceManager = .shared, completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    setImage(
      from: url.map { ResourceRequest($0) }, as: transform, placeholder: placeholder, crossfade: crossfade,
      showsIndicator: showsIndicator, settings: settings, manager: manager, completion: completion)
  }

  /// Loads the image of a URL with a transform for the size of the view and shows it: see `setImage(from:as:)` for a request. To
  /// set options of the load, pass a request.
  @_disfavoredOverload @discardableResult
  public func setImage(
    from url: URL?,
    as transform: @escaping @Sendable (_ size: PixelSize?, _ scale: Double) -> ResourceTransform<DisplayImage>,
    placeholder: PlatformImage? = nil, crossfade: Duration? = nil, showsIndicator: Bool = false,
    settings: ImageModel.Settings = ImageModel.Settings(), manager: ResourceManager = .shared,
    completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    setImage(
      from: url.map { ResourceRequest($0) }, as: transform, placeholder: placeholder, crossfade: crossfade,
      showsIndicator: showsIndicator, settings: settings, manager: manager, completion: completion)
  }
}

/// The loader of an image that `setImage(from:)` shows. The view owns it.
@MainActor
public final class ViewImageLoader<PlatformImage> {
  /// The model of the last load, or `nil` before the first one.
  public var model: ImageModel? { binding?.model }
  /// A function that returns the state of the view.
  let state: @MainActor () -> ViewState
  private let make: (DisplayImage) -> PlatformImage?
  private let show: @MainActor (_ image: PlatformImage?, _ crossfade: Duration?) -> Void
  private let showIndicator: @MainActor (_ isVisible: Bool) -> Void
  private let report: @MainActor () -> Void
  private var binding: ImageBinding?
  private var placeholder: PlatformImage?

  /// Creates the loader of an image of a view. The closures reference the view weakly.
  ///
  /// - Parameters:
  ///   - report: A function that ensures that each change of the view is passed to ``changed(_:)`` from now on.
  init(
    make: @escaping (DisplayImage) -> PlatformImage?, show: @escaping @MainActor (PlatformImage?, Duration?) -> Void,
    showIndicator: @escaping @MainActor (Bool) -> Void, state: @escaping @MainActor () -> ViewState,
    report: @escaping @MainActor () -> Void
  ) {
    (self.make, self.show, self.showIndicator, self.state, self.report) = (make, show, showIndicator, state, report)
  }

  package func load(
    _ request: ResourceRequest?, _ transform: ViewTransform, _ placeholder: PlatformImage?, _ crossfade: Duration?,
    _ showsIndicator: Bool, _ settings: ImageModel.Settings, _ manager: ResourceManager, _ completion: ImageBinding.Completion?
  ) -> ImageModel {
    self.placeholder = placeholder
    let binding = binding(manager)
    // In each load, because the app may have removed the subview that reports.
    report()
    let state = state()
    binding.isVisible = state.isVisible
    // Before the load, whose completion may begin another one with its own indicator.
    if showsIndicator != (binding.loadingIndicator != nil) {
      binding.loadingIndicator = showsIndicator ? showIndicator : nil
    }
    binding.load(
      request, as: transform, size: state.size, scale: state.scale, settings: settings, animates: !ImageBinding.reducesMotion,
      crossfade: crossfade, completion: completion)
    return binding.model
  }

  func changed(_ change: ViewChange) {
    switch change {
    case .layout:
      let state = state()
      binding?.layOut(state.size, scale: state.scale)
    case .visibility(let isVisible): binding?.isVisible = isVisible
    }
  }

  /// Returns the binding, or another one after a load with another manager.
  private func binding(_ manager: ResourceManager) -> ImageBinding {
    if let binding, binding.manager === manager { return binding }
    binding?.end()
    let binding = ImageBinding(manager: manager) { [weak self] content, crossfade in
      guard let self else { return }
      self.show(content.platformImage(self.make, placeholder: self.placeholder), crossfade)
    }
    self.binding = binding
    return binding
  }
}
