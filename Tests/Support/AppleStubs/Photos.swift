// swift-format-ignore-file: AlwaysUseLowerCamelCase
@_exported public import AppleFoundation
// Declarations of PhotoKit.
//
// Source: Apple's documentation of PHAsset, PHFetchResult and PHImageManager (iOS 18 SDK). The type of the orientation is
// CGImagePropertyOrientation of Image I/O.
@_exported public import ImageIO

#if canImport(UIKit)
public import UIKit

public typealias _PlatformImage = UIImage
#else
public import AppKit

public typealias _PlatformImage = NSImage
#endif

// Proof of `@unchecked Sendable`: a declaration without state. PhotoKit's own class is declared Sendable.
open class PHAsset: NSObject, @unchecked Sendable {
  open class func fetchAssets(
    withLocalIdentifiers identifiers: [String], options: PHFetchOptions?
  ) -> PHFetchResult<PHAsset> { fatalError() }
  open var localIdentifier: String { fatalError() }
  open var modificationDate: Date? { fatalError() }
}

open class PHFetchOptions: NSObject {}

open class PHFetchResult<ObjectType: AnyObject>: NSObject {
  open var firstObject: ObjectType? { fatalError() }
}

public enum PHImageContentMode: Int, Sendable {
  case aspectFit = 0
  case aspectFill = 1
}

public enum PHImageRequestOptionsDeliveryMode: Int, Sendable {
  case opportunistic = 0
  case highQualityFormat = 1
  case fastFormat = 2
}

public enum PHImageRequestOptionsResizeMode: Int, Sendable {
  case none = 0
  case fast = 1
  case exact = 2
}

open class PHImageRequestOptions: NSObject {
  open var deliveryMode: PHImageRequestOptionsDeliveryMode {
    get { fatalError() }
    set { fatalError() }
  }
  open var resizeMode: PHImageRequestOptionsResizeMode {
    get { fatalError() }
    set { fatalError() }
  }
  open var isNetworkAccessAllowed: Bool {
    get { fatalError() }
    set { fatalError() }
  }
}

public typealias PHImageRequestID = Int32

public let PHImageErrorKey = ""

open class PHImageManager: NSObject {
  open class func `default`() -> PHImageManager { fatalError() }
  @discardableResult
  open func requestImage(
    for asset: PHAsset, targetSize: CGSize, contentMode: PHImageContentMode, options: PHImageRequestOptions?,
    resultHandler: @escaping (_PlatformImage?, [AnyHashable: Any]?) -> Void
  ) -> PHImageRequestID { fatalError() }
  @discardableResult
  open func requestImageDataAndOrientation(
    for asset: PHAsset, options: PHImageRequestOptions?,
    resultHandler: @escaping @Sendable (Data?, String?, CGImagePropertyOrientation, [AnyHashable: Any]?) -> Void
  ) -> PHImageRequestID { fatalError() }
  open func cancelImageRequest(_ requestID: PHImageRequestID) { fatalError() }
}
