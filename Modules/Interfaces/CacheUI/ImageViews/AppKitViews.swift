#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit
public import Etagere
internal import QuartzCore

extension NSImageView: ImageLoadingView {
  /// The loader of the image that `setImage(from:)` shows.
  public var viewImageLoader: ViewImageLoader<NSImage> {
    .owned(by: self, for: "image", make: \.nsImage, showIndicator: { $0.showIndicator($1) }, set: { $0.image = $1 })
  }

  private func showIndicator(_ isVisible: Bool) {
    subviews.lazy.compactMap { $0 as? LoadingIndicator }.first?.removeFromSuperview()
    guard isVisible else { return }
    let indicator = LoadingIndicator(frame: .zero)
    indicator.style = .spinning
    indicator.controlSize = .small
    indicator.sizeToFit()
    let size = indicator.frame.size
    indicator.setFrameOrigin(NSPoint(x: bounds.midX - size.width / 2, y: bounds.midY - size.height / 2))
    indicator.autoresizingMask = [.minXMargin, .maxXMargin, .minYMargin, .maxYMargin]
    addSubview(indicator)
    indicator.startAnimation(nil)
  }
}

extension NSButton {
  /// Loads an image and shows it as the image of the button. Until it is available, the button shows the placeholder.
  ///
  /// ```swift
  /// button.setImage(from: url, as: .displayImage(.fill(48, 48), scale: 2))
  /// ```
  ///
  /// The image and the alternate image each have a load of their own. Another load for the same one cancels the earlier one. The
  /// loads end with the button. Animated images play while the button is in a window.
  ///
  /// - Parameters:
  ///   - request: The request of the image, or `nil` to show only the placeholder.
  ///   - transform: The transform that makes the image. With `nil`, it is the whole image in the scale of the display.
  ///   - placeholder: The image that is shown during the load and after an error.
  ///   - crossfade: The duration of the crossfade to an image that was not in memory, or `nil` for no crossfade.
  ///   - settings: The settings of the model.
  ///   - manager: The manager that loads the image.
  ///   - completion: A closure that is called once on the main actor, unless another load of the image begins before.
  /// - Returns: The model of the image, which cancels, retries and reports progress.
  @discardableResult
  public func setImage(
    from request: ResourceRequest?, as transform: ResourceTransform<DisplayImage>? = nil, placeholder: NSImage? = nil,
    crossfade: Duration? = nil, settings: ImageModel.Settings = ImageModel.Settings(), manager: ResourceManager = .shared,
    completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    viewImageLoader("image") { $0.image = $1 }
      .load(request, .fixed(transform ?? wholeImage), placeholder, crossfade, false, settings, manager, completion)
  }

  /// Loads an image and shows it as the alternate image of the button: see `setImage(from:as:)`.
  @discardableResult
  public func setAlternateImage(
    from request: ResourceRequest?, as transform: ResourceTransform<DisplayImage>? = nil, placeholder: NSImage? = nil,
    crossfade: Duration? = nil, settings: ImageModel.Settings = ImageModel.Settings(), manager: ResourceManager = .shared,
    completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    viewImageLoader("alternateImage") { $0.alternateImage = $1 }
      .load(request, .fixed(transform ?? wholeImage), placeholder, crossfade, false, settings, manager, completion)
  }

  /// Loads the image of a URL and shows it as the image of the button: see `setImage(from:as:)` for a request. To set options of
  /// the load, pass a request.
  @_disfavoredOverload @discardableResult
  public func setImage(
    from url: URL?, as transform: ResourceTransform<DisplayImage>? = nil, placeholder: NSImage? = nil, crossfade: Duration? = nil,
    settings: ImageModel.Settings = ImageModel.Settings(), manager: ResourceManager = .shared,
    completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    setImage(
      from: url.map { ResourceRequest($0) }, as: transform, placeholder: placeholder, crossfade: crossfade, settings: settings,
      manager: manager, completion: completion)
  }

  /// Loads the image of a URL and shows it as the alternate image of the button: see `setImage(from:as:)` for a request. To set
  /// options of the load, pass a request.
  @_disfavoredOverload @discardableResult
  public func setAlternateImage(
    from url: URL?, as transform: ResourceTransform<DisplayImage>? = nil, placeholder: NSImage? = nil, crossfade: Duration? = nil,
    settings: ImageModel.Settings = ImageModel.Settings(), manager: ResourceManager = .shared,
    completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    setAlternateImage(
      from: url.map { ResourceRequest($0) }, as: transform, placeholder: placeholder, crossfade: crossfade, settings: settings,
      manager: manager, completion: completion)
  }

  private func viewImageLoader(
    _ place: String, _ set: @escaping @MainActor (NSButton, NSImage?) -> Void
  ) -> ViewImageLoader<NSImage> {
    .owned(by: self, for: place, make: \.nsImage, set: set)
  }
}

extension NSView: HostView {
  package var displayScales: (own: Double, main: Double) {
    (Double(window?.backingScaleFactor ?? 0), Double(NSScreen.main?.backingScaleFactor ?? 0))
  }

  package var pointSize: (width: Double, height: Double) { (Double(bounds.width), Double(bounds.height)) }

  package var isInWindow: Bool { window != nil }

  package var ownedLoaders: OwnedLoaders { .of(self) }

  package func addReporter() {
    // An extension cannot override `layout`.
    let reporter = subviews.lazy.compactMap { $0 as? LayoutReporter }.first ?? LayoutReporter(frame: bounds)
    if reporter.superview == nil {
      reporter.autoresizingMask = [.width, .height]
      addSubview(reporter)
    }
    reporter.needsLayout = true
  }

  package func crossfade(_ duration: Duration?, _ change: @escaping @MainActor () -> Void) {
    if let duration {
      wantsLayer = true
      let transition = CATransition()
      transition.type = .fade
      transition.duration = duration / .seconds(1)
      layer?.add(transition, forKey: "etagere.crossfade")
    }
    change()
  }
}

/// An invisible subview that reports its layouts and its windows to the loaders of its superview.
private final class LayoutReporter: NSView {
  override func layout() {
    super.layout()
    superview?.ownedLoaders.laidOut()
  }

  override func setFrameSize(_ size: NSSize) {
    super.setFrameSize(size)
    // Before the first layout, a view without a size waits.
    if size.width > 0, size.height > 0 { superview?.ownedLoaders.laidOut() }
  }

  override func viewDidMoveToWindow() {
    super.viewDidMoveToWindow()
    // An app that removes all subviews does not hide the view: the reporter then has no superview.
    superview?.ownedLoaders.moved(isInWindow: window != nil)
  }

  // Clicks go to the view.
  override func hitTest(_ point: NSPoint) -> NSView? { nil }
}

/// The activity indicator of a load, which is told from those of the app by its type.
private final class LoadingIndicator: NSProgressIndicator {}

extension DisplayImage {
  /// The image as an AppKit image, or `nil` if the system cannot create one.
  public var nsImage: NSImage? {
    guard let cgImage else { return nil }
    let image = NSImage(cgImage: cgImage, size: CGSize(width: pointWidth, height: pointHeight))
    image.isTemplate = isTemplate
    return image
  }
}
#endif
