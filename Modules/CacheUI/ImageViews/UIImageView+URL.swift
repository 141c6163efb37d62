#if canImport(UIKit) && !os(watchOS)
public import Etagere
public import Foundation
internal import ObjectiveC
public import UIKit

extension UIImageView {
  /// Loads an image and shows it. Until it is available, the view shows the placeholder, or the earlier image if that is the
  /// image of the same URL in another size.
  ///
  /// ```swift
  /// cell.imageView.setImage(from: url, placeholder: UIImage(systemName: "photo"), crossfade: .milliseconds(200))
  /// ```
  ///
  /// Call this method again when a cell is reused: it cancels the earlier load, whose image never appears. The load
  /// ends with the view.
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
    from url: URL?, placeholder: UIImage? = nil, _ processor: ImageProcessor? = nil, crossfade: Duration? = nil,
    options: RequestOptions = RequestOptions(), manager: ResourceManager = .shared,
    completion: (@MainActor (Result<Resource<DisplayImage>, CacheError>) -> Void)? = nil
  ) -> ImageModel {
    let scale = Double(traitCollection.displayScale)
    let binding = imageBinding(manager)
    binding.load(
      url, processor ?? .covering(width: Double(bounds.width), height: Double(bounds.height), scale: scale), scale: scale,
      options: options, manager: manager, animates: !UIAccessibility.isReduceMotionEnabled, crossfade: crossfade,
      display: { [weak self] image, crossfade in self?.show(image?.uiImage ?? placeholder, crossfade) },
      completion: completion)
    return binding.model
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

extension DisplayImage {
  /// The image as a UIKit image, or `nil` if the system cannot create one.
  public var uiImage: UIImage? { cgImage.map { UIImage(cgImage: $0, scale: CGFloat(scale), orientation: .up) } }
}
#endif
