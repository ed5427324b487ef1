SELECT count(DISTINCT cs_order_number) AS orders, sum(cs_ext_ship_cost) AS shipping,
    sum(cs_net_profit) AS profit
FROM catalog_sales AS sale, date_dim, customer_address, call_center
WHERE d_date BETWEEN DATE '2002-02-01' AND DATE '2002-02-01' + INTERVAL 60 DAYS
    AND sale.cs_ship_date_sk = d_date_sk AND sale.cs_ship_addr_sk = ca_address_sk
    AND ca_state = 'GA' AND sale.cs_call_center_sk = cc_call_center_sk
    AND cc_county IN ('Williamson County', 'Ziebach County')
    AND EXISTS (
        SELECT * FROM catalog_sales AS other
        WHERE sale.cs_order_number = other.cs_order_number
            AND sale.cs_warehouse_sk <> other.cs_warehouse_sk
    )
    AND NOT EXISTS (
        SELECT * FROM catalog_returns WHERE sale.cs_order_number = cr_order_number
    )
ORDER BY orders
LIMIT 100
