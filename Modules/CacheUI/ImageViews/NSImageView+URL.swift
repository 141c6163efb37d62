#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit
public import Etagere
internal import ObjectiveC
internal import QuartzCore

extension NSImageView {
  /// Loads an image and shows it. Until it is available, the view shows the placeholder, or the earlier image if that is the
  /// image of the same URL in another size.
  ///
  /// ```swift
  /// row.imageView?.setImage(from: url, placeholder: NSImage(named: "placeholder"), .fill(64, 64))
  /// ```
  ///
  /// Call this method again when a row is reused: it cancels the earlier load, whose image never appears. The load ends
  /// with the view.
  ///
  /// - Parameters:
  ///   - url: The URL of the image, or `nil` to show only the placeholder.
  ///   - placeholder: The image that is shown during the load and after an error.
  ///   - processor: The steps that change the image. Without steps, the image is resized to cover the view's bounds,
  ///     unless these are empty.
  ///   - crossfade: The duration of the crossfade to an image that was not in memory, or `nil` for no crossfade.
  ///   - options: The options of the load.
  ///   - manager: The manager that loads the image.
  ///   - completion: A closure that is called once on the main actor, unless another load of this view begins before.
  /// - Returns: The model of the view, which cancels, retries and reports progress.
  @discardableResult
  public func setImage(
    from url: URL?, placeholder: NSImage? = nil, _ processor: ImageProcessor? = nil, crossfade: Duration? = nil,
    options: RequestOptions = RequestOptions(), manager: ResourceManager = .shared,
    completion: (@MainActor (Result<Resource<DisplayImage>, CacheError>) -> Void)? = nil
  ) -> ImageModel {
    let scale = Double(window?.backingScaleFactor ?? NSScreen.main?.backingScaleFactor ?? 2)
    let binding = imageBinding(manager)
    binding.load(
      url, processor ?? .covering(width: Double(bounds.width), height: Double(bounds.height), scale: scale), scale: scale,
      options: options, manager: manager, animates: !NSWorkspace.shared.accessibilityDisplayShouldReduceMotion,
      crossfade: crossfade, display: { [weak self] image, crossfade in self?.show(image?.nsImage ?? placeholder, crossfade) },
      completion: completion)
    return binding.model
  }

  private func show(_ image: NSImage?, _ crossfade: Duration?) {
    if let crossfade {
      wantsLayer = true
      let transition = CATransition()
      transition.type = .fade
      transition.duration = crossfade / .seconds(1)
      layer?.add(transition, forKey: "etagere.crossfade")
    }
    self.image = image
  }

  private func imageBinding(_ manager: ResourceManager) -> ImageViewBinding {
    if let binding = objc_getAssociatedObject(self, bindingKey) as? ImageViewBinding { return binding }
    let binding = ImageViewBinding(manager: manager)
    objc_setAssociatedObject(self, bindingKey, binding, .OBJC_ASSOCIATION_RETAIN_NONATOMIC)
    return binding
  }
}

extension DisplayImage {
  /// The image as an AppKit image, or `nil` if the system cannot create one.
  public var nsImage: NSImage? { cgImage.map { NSImage(cgImage: $0, size: CGSize(width: pointWidth, height: pointHeight)) } }
}
#endif
