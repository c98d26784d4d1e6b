"""REST answers and their OpenAPI document."""
