"""The stores, small modules over boto3."""
