// swift-format-ignore-file: AlwaysUseLowerCamelCase

// Declarations of Apple's Foundation. The package's modules import this module in place of Foundation. The declarations that have
// the same form on Linux come from there, named one by one, so that nothing else of Linux's Foundation is visible.
//
// Source: Apple's documentation of Foundation and of the URL Loading System (iOS 18 SDK). The attributes for concurrency are
// those of NSURLSession.h and of the headers that it includes. The protocols for delegates have only the methods that
// CacheNetworking implements. They are optional in Apple's protocols, and required here: a method whose type differs is then an
// error instead of a method that is never called.
@_exported public import AppleDispatch
@_exported public import Darwin
@_exported public import FoundationEssentials
@_exported public import FoundationInternationalization
@_exported public import ObjectiveC

@_exported public import class Foundation.Bundle
@_exported public import struct Foundation.CGFloat
@_exported public import struct Foundation.CGPoint
@_exported public import struct Foundation.CGRect
@_exported public import struct Foundation.CGSize
@_exported public import class Foundation.JSONSerialization
@_exported public import class Foundation.NSArray
@_exported public import class Foundation.NSAttributedString
@_exported public import class Foundation.NSCoder
@_exported public import class Foundation.NSData
@_exported public import class Foundation.NSDictionary
@_exported public import class Foundation.NSError
@_exported public import func Foundation.NSHomeDirectory
@_exported public import class Foundation.NSLock
@_exported public import class Foundation.NSMutableData
@_exported public import class Foundation.NSObject
@_exported public import protocol Foundation.NSObjectProtocol
@_exported public import var Foundation.NSPOSIXErrorDomain
@_exported public import class Foundation.NSString
@_exported public import var Foundation.NSUnderlyingErrorKey
@_exported public import struct Foundation.Notification
@_exported public import class Foundation.NotificationCenter
@_exported public import struct Foundation.ObjCBool
@_exported public import class Foundation.OperationQueue
@_exported public import class Foundation.Thread
@_exported public import struct Foundation.URLError

// MARK: Objective-C

public func NSSelectorFromString(_ name: String) -> Selector { Selector() }

extension NSObject {
  /// The program ViewTree has no application object.
  public class func responds(to selector: Selector!) -> Bool { false }
  public class func perform(_ selector: Selector!) -> Unmanaged<AnyObject>! { fatalError() }
}

// MARK: Processes

extension ProcessInfo {
  /// Not available on macOS.
  public func performExpiringActivity(withReason reason: String, using block: @escaping @Sendable (_ expired: Bool) -> Void) {
    fatalError()
  }
}

// MARK: Folders

public struct URLResourceValues {
  public init() { fatalError() }
  public var isExcludedFromBackup: Bool?
}

extension URL {
  public static var cachesDirectory: URL { fatalError() }
  public mutating func setResourceValues(_ values: URLResourceValues) throws { fatalError() }
}

extension FileManager {
  public func containerURL(forSecurityApplicationGroupIdentifier groupIdentifier: String) -> URL? { fatalError() }
}

// MARK: Errors

extension URLError {
  public enum NetworkUnavailableReason: Int, Sendable { case cellular, expensive, constrained }
  public var networkUnavailableReason: NetworkUnavailableReason? { fatalError() }
}

// MARK: Requests and responses

public struct URLRequest: Hashable, Sendable {
  public enum CachePolicy: UInt, Sendable {
    case useProtocolCachePolicy = 0
    case reloadIgnoringLocalCacheData = 1
    case returnCacheDataElseLoad = 2
    case returnCacheDataDontLoad = 3
    case reloadIgnoringLocalAndRemoteCacheData = 4
    case reloadRevalidatingCacheData = 5
  }

  public init(url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: TimeInterval = 60) { fatalError() }
  public var url: URL?
  public var cachePolicy: CachePolicy
  public var timeoutInterval: TimeInterval
  public var allowsCellularAccess: Bool
  public var allowsExpensiveNetworkAccess: Bool
  public var allowsConstrainedNetworkAccess: Bool
  public var httpMethod: String?
  public var httpBody: Data?
  public var httpShouldHandleCookies: Bool
  public func value(forHTTPHeaderField field: String) -> String? { fatalError() }
  public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) { fatalError() }
}

// Apple's headers declare the following classes NS_SWIFT_SENDABLE.

// Proof: a declaration without state.
open class URLResponse: NSObject, @unchecked Sendable {
  open var url: URL? { fatalError() }
  open var expectedContentLength: Int64 { fatalError() }
}

// Proof: a declaration without state.
open class HTTPURLResponse: URLResponse, @unchecked Sendable {
  public init?(url: URL, statusCode: Int, httpVersion: String?, headerFields: [String: String]?) { fatalError() }
  open var statusCode: Int { fatalError() }
  open var allHeaderFields: [AnyHashable: Any] { fatalError() }
}

// MARK: Authentication

/// A class of Security.
public final class SecTrust {}

public let NSURLAuthenticationMethodHTTPBasic = "NSURLAuthenticationMethodHTTPBasic"
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

// Proof: a declaration without state.
open class URLProtectionSpace: NSObject, @unchecked Sendable {
  open var authenticationMethod: String { fatalError() }
  open var host: String { fatalError() }
  open var port: Int { fatalError() }
  open var realm: String? { fatalError() }
  // Linux's NSObject has a method of this name.
  open override func isProxy() -> Bool { fatalError() }
  open var serverTrust: SecTrust? { fatalError() }
}

// Proof: a declaration without state.
open class URLCredential: NSObject, @unchecked Sendable {
  public enum Persistence: UInt, Sendable { case none, forSession, permanent, synchronizable }
  public init(user: String, password: String, persistence: Persistence) { fatalError() }
  public init(trust: SecTrust) { fatalError() }
}

// Proof: a declaration without state.
open class URLAuthenticationChallenge: NSObject, @unchecked Sendable {
  open var protectionSpace: URLProtectionSpace { fatalError() }
  open var previousFailureCount: Int { fatalError() }
}

// MARK: Sessions. The program ViewTree creates one, which loads nothing.

// Proof: a declaration without state.
open class URLCache: NSObject, @unchecked Sendable {
  open class var shared: URLCache {
    get { fatalError() }
    set { fatalError() }
  }
  open func removeAllCachedResponses() { fatalError() }
}

// Proof: a declaration without state.
open class URLCredentialStorage: NSObject, @unchecked Sendable {}

// Proof: a declaration without state.
open class HTTPCookie: NSObject, @unchecked Sendable {
  public enum AcceptPolicy: UInt, Sendable { case always, never, onlyFromMainDocumentDomain }
}

// Proof: a declaration without state.
open class HTTPCookieStorage: NSObject, @unchecked Sendable {}

// Proof: no other thread uses the one that ViewTree creates.
open class URLSessionConfiguration: NSObject, @unchecked Sendable {
  open class var `default`: URLSessionConfiguration { URLSessionConfiguration() }
  open class var ephemeral: URLSessionConfiguration { URLSessionConfiguration() }
  open override func copy() -> Any { URLSessionConfiguration() }
  open var connectionProxyDictionary: [AnyHashable: Any]?
  open var httpAdditionalHeaders: [AnyHashable: Any]?
  open var httpCookieAcceptPolicy = HTTPCookie.AcceptPolicy.onlyFromMainDocumentDomain
  open var httpCookieStorage: HTTPCookieStorage?
  open var httpMaximumConnectionsPerHost = 6
  open var httpShouldSetCookies = true
  open var requestCachePolicy = URLRequest.CachePolicy.useProtocolCachePolicy
  open var timeoutIntervalForRequest: TimeInterval = 60
  open var urlCache: URLCache?
  open var urlCredentialStorage: URLCredentialStorage?
  open var waitsForConnectivity = false
}

// Proof: its state is set once.
open class URLSession: NSObject, @unchecked Sendable {
  public enum ResponseDisposition: Int, Sendable { case cancel, allow, becomeDownload, becomeStream }
  public enum AuthChallengeDisposition: Int, Sendable {
    case useCredential, performDefaultHandling, cancelAuthenticationChallenge, rejectProtectionSpace
  }

  public init(configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?) {
    self.delegate = delegate
    delegateQueue = queue ?? OperationQueue()
  }
  open private(set) var delegate: (any URLSessionDelegate)?
  open private(set) var delegateQueue: OperationQueue
  open func dataTask(with request: URLRequest) -> URLSessionDataTask { fatalError() }
  open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask { fatalError() }
  open func finishTasksAndInvalidate() {}
  open func invalidateAndCancel() {}
}

// Proof: a declaration without state.
open class URLSessionTask: NSObject, @unchecked Sendable {
  public enum State: Int, Sendable { case running, suspended, canceling, completed }
  open var taskIdentifier: Int { fatalError() }
  open var originalRequest: URLRequest? { fatalError() }
  open var currentRequest: URLRequest? { fatalError() }
  open var response: URLResponse? { fatalError() }
  open var state: State { fatalError() }
  open var priority: Float {
    get { fatalError() }
    set { fatalError() }
  }
  open func resume() { fatalError() }
  open func cancel() { fatalError() }
}

// Proof: a declaration without state.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}
// Proof: a declaration without state.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {}

public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)
  func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
}

public protocol URLSessionTaskDelegate: URLSessionDelegate {
  func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64)
  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)
  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)
  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)
}

// MARK: Metrics

// Proof: a declaration without state.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {
  open var fetchStartDate: Date? { fatalError() }
  open var domainLookupStartDate: Date? { fatalError() }
  open var domainLookupEndDate: Date? { fatalError() }
  open var connectStartDate: Date? { fatalError() }
  open var connectEndDate: Date? { fatalError() }
  open var secureConnectionStartDate: Date? { fatalError() }
  open var secureConnectionEndDate: Date? { fatalError() }
  open var requestStartDate: Date? { fatalError() }
  open var requestEndDate: Date? { fatalError() }
  open var responseStartDate: Date? { fatalError() }
  open var responseEndDate: Date? { fatalError() }
  open var networkProtocolName: String? { fatalError() }
  open var isReusedConnection: Bool { fatalError() }
  open var countOfResponseBodyBytesReceived: Int64 { fatalError() }
}

// Proof: a declaration without state.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {
  open var transactionMetrics: [URLSessionTaskTransactionMetrics] { fatalError() }
}
