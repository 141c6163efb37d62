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
    .owned(by: self, for: "image") {
      ViewImageLoader(
        make: \.uiImage, show: { [weak self] image, duration in self?.crossfade(duration) { self?.image = image } },
        showIndicator: { [weak self] in self?.showIndicator($0) }, state: { [weak self] in self?.loadState ?? ViewState() },
        report: { [weak self] in self?.report("image", to: $0) })
    }
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
      .load(request, .fixed(transform ?? whole), placeholder, crossfade, false, settings, manager, completion)
  }

  /// Loads a background image and shows it in a state of the button: see `setImage(from:as:for:)`.
  @discardableResult
  public func setBackgroundImage(
    from request: ResourceRequest?, as transform: ResourceTransform<DisplayImage>? = nil, for state: UIControl.State,
    placeholder: UIImage? = nil, crossfade: Duration? = nil, settings: ImageModel.Settings = ImageModel.Settings(),
    manager: ResourceManager = .shared, completion: ImageBinding.Completion? = nil
  ) -> ImageModel {
    viewImageLoader("backgroundImage", state) { $0.setBackgroundImage($1, for: state) }
      .load(request, .fixed(transform ?? whole), placeholder, crossfade, false, settings, manager, completion)
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

  private var whole: ResourceTransform<DisplayImage> { .displayImage(scale: pixelsPerPoint) }

  private func viewImageLoader(
    _ kind: String, _ state: UIControl.State, _ set: @escaping @MainActor (UIButton, UIImage?) -> Void
  ) -> ViewImageLoader<UIImage> {
    let place = "\(kind) \(state.rawValue)"
    return .owned(by: self, for: place) {
      ViewImageLoader(
        make: \.uiImage,
        show: { [weak self] image, duration in self?.crossfade(duration) { if let self { set(self, image) } } },
        state: { [weak self] in self?.loadState ?? ViewState() }, report: { [weak self] in self?.report(place, to: $0) })
    }
  }
}

extension UIView {
  fileprivate var pixelsPerPoint: Double {
    firstDisplayScale(of: Double(traitCollection.displayScale), Double(UITraitCollection.current.displayScale))
  }

  /// The state of the view on which a load depends.
  fileprivate var loadState: ViewState {
    let scale = pixelsPerPoint
    let size = PixelSize(viewWidth: Double(bounds.width), height: Double(bounds.height), scale: scale)
    return ViewState(size: size, scale: scale, isVisible: window != nil)
  }

  /// Reports each layout and each change of the window from now on.
  ///
  /// - Parameters:
  ///   - place: The name of the property that shows the image. A later call for it replaces the closure.
  ///   - changed: A closure that receives the changes.
  fileprivate func report(_ place: String, to changed: @escaping @MainActor (ViewChange) -> Void) {
    // An extension cannot override `layoutSubviews`, and the bounds of a view cannot be observed.
    let reporter = subviews.lazy.compactMap { $0 as? LayoutReporter }.first ?? LayoutReporter(frame: bounds)
    reporter.places[place] = changed
    if reporter.superview == nil {
      reporter.autoresizingMask = [.flexibleWidth, .flexibleHeight]
      reporter.isUserInteractionEnabled = false
      addSubview(reporter)
    }
    reporter.setNeedsLayout()
  }

  /// Makes a change, with a crossfade if there is a duration.
  fileprivate func crossfade(_ duration: Duration?, _ change: @escaping @MainActor () -> Void) {
    guard let duration else { return change() }
    UIView.transition(with: self, duration: duration / .seconds(1), options: [.transitionCrossDissolve, .allowUserInteraction]) {
      change()
    }
  }
}

/// An invisible subview that fills an image view or a button and reports each of its layouts and windows.
private final class LayoutReporter: UIView {
  /// The closures that receive the changes, by the property that shows the image.
  var places: [String: @MainActor (ViewChange) -> Void] = [:]

  override func layoutSubviews() {
    super.layoutSubviews()
    report(.layout)
  }

  override func didMoveToWindow() {
    super.didMoveToWindow()
    // An app that removes all subviews does not hide the view.
    if superview != nil { report(.visibility(window != nil)) }
  }

  private func report(_ change: ViewChange) {
    for changed in places.values { changed(change) }
  }
}

/// The activity indicator of a load, which is told from those of the app by its type.
private final class LoadingIndicator: UIActivityIndicatorView {}
#endif
