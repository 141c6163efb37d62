#if canImport(UIKit) && !os(watchOS)
public import Etagere
public import Foundation
internal import ObjectiveC
public import UIKit

extension UIImageView {
  /// Loads an image and shows it. Until it is available, the view shows the placeholder, or the earlier image if that is the
  /// image of the same URL in another size or ``ImageModel/Settings/keepsPreviousImage`` is set.
  ///
  /// ```swift
  /// cell.imageView.setImage(from: url, placeholder: UIImage(systemName: "photo"), crossfade: .milliseconds(200))
  /// ```
  ///
  /// Call this method again when a cell is reused: it cancels the earlier load, whose image no longer appears. The
  /// load ends with the view.
  ///
  /// - Parameters:
  ///   - url: The URL of the image, or `nil` to show only the placeholder.
  ///   - placeholder: The image that is shown during the load and after an error.
  ///   - processor: The steps that change the image. With `nil`, the image is resized to cover the view's bounds, after a layout
  ///     if these are empty, and again after the view was enlarged. A view that is empty after its layout, because it takes the
  ///     size of its image, loads the whole image. For a view that is never laid out, pass `ImageProcessor.none`, which loads the
  ///     whole image immediately.
  ///   - crossfade: The duration of the crossfade to an image that was not in memory, or `nil` for no crossfade.
  ///   - options: The options of the load.
  ///   - settings: The settings of the view's model.
  ///   - manager: The manager that loads the image.
  ///   - completion: A closure that is called once on the main actor, unless another load of this view begins before.
  /// - Returns: The model of the view, which cancels, retries and reports progress.
  @discardableResult
  public func setImage(
    from url: URL?, placeholder: UIImage? = nil, _ processor: ImageProcessor? = nil, crossfade: Duration? = nil,
    options: RequestOptions = RequestOptions(), settings: ImageModel.Settings = ImageModel.Settings(),
    manager: ResourceManager = .shared, completion: (@MainActor (Result<Resource<DisplayImage>, CacheError>) -> Void)? = nil
  ) -> ImageModel {
    let request = url.map { ResourceRequest($0, options: options) }
    let transform = processor.map { ViewTransform.fixed(.displayImage($0, scale: pixelsPerPoint)) } ?? .covering()
    return load(request, transform, placeholder, crossfade, settings, manager, completion)
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
  ///   - settings: The settings of the view's model.
  ///   - manager: The manager that loads the image.
  ///   - completion: A closure that is called once on the main actor, unless another load of this view begins before.
  /// - Returns: The model of the view, which cancels, retries and reports progress.
  @discardableResult
  public func setImage(
    from request: ResourceRequest?, as transform: ResourceTransform<DisplayImage>, placeholder: UIImage? = nil,
    crossfade: Duration? = nil, settings: ImageModel.Settings = ImageModel.Settings(), manager: ResourceManager = .shared,
    completion: (@MainActor (Result<Resource<DisplayImage>, CacheError>) -> Void)? = nil
  ) -> ImageModel {
    load(request, .fixed(transform), placeholder, crossfade, settings, manager, completion)
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
  ///   - settings: The settings of the view's model.
  ///   - manager: The manager that loads the image.
  ///   - completion: A closure that is called once on the main actor, unless another load of this view begins before.
  /// - Returns: The model of the view, which cancels, retries and reports progress.
  @discardableResult
  public func setImage(
    from request: ResourceRequest?,
    as transform: @escaping @Sendable (_ size: PixelSize?, _ scale: Double) -> ResourceTransform<DisplayImage>,
    placeholder: UIImage? = nil, crossfade: Duration? = nil, settings: ImageModel.Settings = ImageModel.Settings(),
    manager: ResourceManager = .shared, completion: (@MainActor (Result<Resource<DisplayImage>, CacheError>) -> Void)? = nil
  ) -> ImageModel {
    load(request, .sized(transform), placeholder, crossfade, settings, manager, completion)
  }

  private func load(
    _ request: ResourceRequest?, _ transform: ViewTransform, _ placeholder: UIImage?, _ crossfade: Duration?,
    _ settings: ImageModel.Settings, _ manager: ResourceManager, _ completion: ImageViewBinding.Completion?
  ) -> ImageModel {
    let binding = imageBinding(manager)
    if transform.isSized { reportLayouts(to: binding) }
    binding.load(
      request, as: transform, size: pixelSize, scale: pixelsPerPoint, settings: settings, manager: manager,
      animates: !UIAccessibility.isReduceMotionEnabled, crossfade: crossfade,
      display: { [weak self] content, crossfade in
        self?.show(content.image(\.uiImage, placeholder: placeholder), crossfade)
      },
      completion: completion)
    return binding.model
  }

  private var pixelsPerPoint: Double {
    firstDisplayScale(of: Double(traitCollection.displayScale), Double(UITraitCollection.current.displayScale))
  }

  private var pixelSize: PixelSize? {
    PixelSize(viewWidth: Double(bounds.width), height: Double(bounds.height), scale: pixelsPerPoint)
  }

  private func reportLayouts(to binding: ImageViewBinding) {
    // A category cannot override `layoutSubviews`, and the bounds of a view cannot be observed.
    let reporter = subviews.lazy.compactMap { $0 as? LayoutReporter }.first ?? LayoutReporter(frame: bounds)
    reporter.report = { [weak self, weak binding] in
      if let self { binding?.layOut(self.pixelSize, scale: self.pixelsPerPoint) }
    }
    if reporter.superview == nil {
      reporter.autoresizingMask = [.flexibleWidth, .flexibleHeight]
      reporter.isUserInteractionEnabled = false
      addSubview(reporter)
    }
    reporter.setNeedsLayout()
  }

  private func show(_ image: UIImage?, _ crossfade: Duration?) {
    guard let crossfade else {
      self.image = image
      return
    }
    UIView.transition(with: self, duration: crossfade / .seconds(1), options: [.transitionCrossDissolve, .allowUserInteraction]) {
      self.image = image
    }
  }

  private func imageBinding(_ manager: ResourceManager) -> ImageViewBinding {
    if let binding = objc_getAssociatedObject(self, bindingKey) as? ImageViewBinding { return binding }
    let binding = ImageViewBinding(manager: manager)
    objc_setAssociatedObject(self, bindingKey, binding, .OBJC_ASSOCIATION_RETAIN_NONATOMIC)
    return binding
  }
}

/// An invisible subview that fills an image view and reports each of its layouts.
private final class LayoutReporter: UIView {
  var report: @MainActor () -> Void = {}

  override func layoutSubviews() {
    super.layoutSubviews()
    report()
  }
}

extension DisplayImage {
  /// The image as a UIKit image, or `nil` if the system cannot create one.
  public var uiImage: UIImage? {
    guard let cgImage else { return nil }
    let image = UIImage(cgImage: cgImage, scale: CGFloat(scale), orientation: .up)
    return isTemplate ? image.withRenderingMode(.alwaysTemplate) : image
  }
}
#endif
