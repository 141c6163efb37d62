// swift-format-ignore-file: AlwaysUseLowerCamelCase
@_exported public import AppleFoundation
// Declarations of PhotoKit.
//
// Source: Apple's documentation of PHAsset, PHFetchResult and PHImageManager (iOS 18 SDK). The type of the orientation is
// CGImagePropertyOrientation of Image I/O.
@_exported public import ImageIO

// Proof of `@unchecked Sendable`: a declaration without state. PhotoKit's own class is declared Sendable.
open class PHAsset: NSObject, @unchecked Sendable {
  open class func fetchAssets(
    withLocalIdentifiers identifiers: [String], options: PHFetchOptions?
  ) -> PHFetchResult<PHAsset> { fatalError() }
  open var localIdentifier: String { fatalError() }
}

open class PHFetchOptions: NSObject {}

open class PHFetchResult<ObjectType: AnyObject>: NSObject {
  open var firstObject: ObjectType? { fatalError() }
}

open class PHImageRequestOptions: NSObject {
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
  open func requestImageDataAndOrientation(
    for asset: PHAsset, options: PHImageRequestOptions?,
    resultHandler: @escaping @Sendable (Data?, String?, CGImagePropertyOrientation, [AnyHashable: Any]?) -> Void
  ) -> PHImageRequestID { fatalError() }
  open func cancelImageRequest(_ requestID: PHImageRequestID) { fatalError() }
}
