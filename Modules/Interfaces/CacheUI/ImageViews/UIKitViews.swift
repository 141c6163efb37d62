#if canImport(UIKit)
public import UIKit

extension DisplayImage {
  /// The image as a UIKit image, or `nil` if the system cannot create one.
  public var uiImage: UIImage? {
    guard let cgImage else { return nil }
    let image = UIImage(cgImage: cgImage, scale: CGFloat(scale), orientation: .up)
    return isTemplate ? image.withRenderingMode(.alwaysTemplate) : image
  }
}
#endif

#if canImport(UIKit) && !os(watchOS)
public import Etagere

extension UIImageView: ImageLoadingView {
  /// The loader of the image that `setImage(from:)` shows.
  public var viewImageLoader: ViewImageLoader<UIImage> {
    .owned(by: self, for: "image", make: \.uiImage, showIndicator: { $0.showIndicator($1) }, set: { $0.image = $1 })
  }

  private func showIndicator(_ isVisible: Bool) {
    subviews.lazy.compactMap { $0 as? LoadingIndicator }.first?.removeFromSuperview()
    guard isVisible else { return }
    let indicator = LoadingIndicator(style: .medium)
    indicator.center = CGPoint(x: bounds.midX, y: bounds.midY)
    indicator.autoresizingMask = [.flexibleLeftMargin, .flexibleRightMargin, .flexibleTopMargin, .flexibleBottomMargin]
    addSubview(indicator)
    indicator.startAnimating()
  }
}

extension UIButton {
  /// Loads an image and shows it in a state of the button. Until it is available, the state has the placeholder.
  ///
  /// ```swift
  /// button.setImage(from: url, as: .displayImage(.fill(72, 72), scale: 3), for: .normal)
  /// ```
  ///
  /// Each state, and each background image, has a load of its own. Another load for the same state cancels the earlier one.
  /// `setImage(from: nil, for: .normal)` removes the image. The loads end with the button. Animated images play while the button
  /// is in a window.
  ///
  /// - Parameters:
  ///   - request: The request of the image, or `nil` to show only the placeholder.
  ///   - transform: The transform that makes the image. With `nil`, it is the whole image in the scale of the display.
  ///   - state: The state of the button.
  ///   - placeholder: The image that is shown during the load and after an error.
  ///   - crossfade: The duration of the crossfade to an image that was not in memory, or `nil` for no crossfade.
  ///   - settings: The settings of the model.
  ///   - manager: The manager that loads the image.
  ///   - completion: A closure that is called once on the main actor, unless another load of the state begins before.
  /// - Returns: The model of the image, which cancels, retries and reports progress.
  @discardableResult
  public func setImage(
    from request: ResourceRequest?, as transform: ResourceTransform<DisplayImage>? = nil, for state: UIControl.State,
    placeholder: UIImage? = nil, crossfade: Duration? = nil, settings: ImageModel.Settings = ImageModel.Settings(),
    manager: ResourceManager = .shared, completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    viewImageLoader("image", state) { $0.setImage($1, for: state) }
      .load(request, .fixed(transform ?? wholeImage), placeholder, crossfade, false, settings, manager, completion)
  }

  /// Loads a background image and shows it in a state of the button: see `setImage(from:as:for:)`.
  @discardableResult
  public func setBackgroundImage(
    from request: ResourceRequest?, as transform: ResourceTransform<DisplayImage>? = nil, for state: UIControl.State,
    placeholder: UIImage? = nil, crossfade: Duration? = nil, settings: ImageModel.Settings = ImageModel.Settings(),
    manager: ResourceManager = .shared, completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    viewImageLoader("backgroundImage", state) { $0.setBackgroundImage($1, for: state) }
      .load(request, .fixed(transform ?? wholeImage), placeholder, crossfade, false, settings, manager, completion)
  }

  /// Loads the image of a URL and shows it in a state of the button: see `setImage(from:as:for:)` for a request. To set options,
  /// pass a request.
  @_disfavoredOverload @discardableResult
  public func setImage(
    from url: URL?, as transform: ResourceTransform<DisplayImage>? = nil, for state: UIControl.State,
    placeholder: UIImage? = nil, crossfade: Duration? = nil, settings: ImageModel.Settings = ImageModel.Settings(),
    manager: ResourceManager = .shared, completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    setImage(
      from: url.map { ResourceRequest($0) }, as: transform, for: state, placeholder: placeholder, crossfade: crossfade,
      settings: settings, manager: manager, completion: completion)
  }

  /// Loads the background image of a URL and shows it in a state of the button: see `setImage(from:as:for:)` for a request. To
  /// set options, pass a request.
  @_disfavoredOverload @discardableResult
  public func setBackgroundImage(
    from url: URL?, as transform: ResourceTransform<DisplayImage>? = nil, for state: UIControl.State,
    placeholder: UIImage? = nil, crossfade: Duration? = nil, settings: ImageModel.Settings = ImageModel.Settings(),
    manager: ResourceManager = .shared, completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    setBackgroundImage(
      from: url.map { ResourceRequest($0) }, as: transform, for: state, placeholder: placeholder, crossfade: crossfade,
      settings: settings, manager: manager, completion: completion)
  }

  private func viewImageLoader(
    _ kind: String, _ state: UIControl.State, _ set: @escaping @MainActor (UIButton, UIImage?) -> Void
  ) -> ViewImageLoader<UIImage> {
    .owned(by: self, for: "\(kind) \(state.rawValue)", make: \.uiImage, set: set)
  }
}

extension UIView: HostView {
  package var displayScales: (own: Double, main: Double) {
    (Double(traitCollection.displayScale), Double(UITraitCollection.current.displayScale))
  }

  package var pointSize: (width: Double, height: Double) { (Double(bounds.width), Double(bounds.height)) }

  package var isInWindow: Bool { window != nil }

  package var ownedLoaders: OwnedLoaders { .of(self) }

  package func addReporter() {
    // An extension cannot override `layoutSubviews`, and the bounds of a view cannot be observed.
    let reporter = subviews.lazy.compactMap { $0 as? LayoutReporter }.first ?? LayoutReporter(frame: bounds)
    if reporter.superview == nil {
      reporter.autoresizingMask = [.flexibleWidth, .flexibleHeight]
      reporter.isUserInteractionEnabled = false
      addSubview(reporter)
    }
    reporter.setNeedsLayout()
  }

  package func crossfade(_ duration: Duration?, _ change: @escaping @MainActor () -> Void) {
    guard let duration else { return change() }
    UIView.transition(with: self, duration: duration / .seconds(1), options: [.transitionCrossDissolve, .allowUserInteraction]) {
      change()
    }
  }
}

/// An invisible subview that reports its layouts and its windows to the loaders of its superview.
private final class LayoutReporter: UIView {
  override func layoutSubviews() {
    super.layoutSubviews()
    superview?.ownedLoaders.laidOut()
  }

  override func didMoveToWindow() {
    super.didMoveToWindow()
    // An app that removes all subviews does not hide the view: the reporter then has no superview.
    superview?.ownedLoaders.moved(isInWindow: window != nil)
  }
}

/// The activity indicator of a load, which is told from those of the app by its type.
private final class LoadingIndicator: UIActivityIndicatorView {}
#endif
